import { decodeAmf0, encodeAmf0 } from './amf0.ts';
import { amfObject, isAmfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { RtmpError } from './error.ts';
import { MessageType, type RtmpMessage } from './message.ts';

/** A command message (RTMP specification section 7.2). */
export interface Command {
  readonly name: string;
  /** 0 when no answer is expected. */
  readonly transactionId: number;
  /** Empty where the sender gave null. */
  readonly object: AmfObject;
  readonly args: readonly AmfValue[];
}

/**
 * Reads a command of either encoding.
 * @throws RtmpError when the body is not a command
 */
export function decodeCommand(message: RtmpMessage): Command {
  const [name, transactionId, object, ...args] = values(message);
  if (typeof name !== 'string') throw new RtmpError('command without a name');
  return {
    name,
    transactionId: typeof transactionId === 'number' ? transactionId : 0,
    object: isAmfObject(object) ? object : amfObject(),
    args,
  };
}

/** Receiver of data messages. */
export interface DataEvents {
  /** Values of a data message, such as `['@setDataFrame', 'onMetaData', {...}]`. */
  data(values: AmfValue[]): void;
  /** A data message is malformed. The connection goes on, unless this throws. */
  malformedData(error: RtmpError): void;
}

/** Reads a data message of either encoding. */
export function deliverData(message: RtmpMessage, events: DataEvents): void {
  let read: AmfValue[];
  try {
    read = values(message);
  } catch (error) {
    if (!(error instanceof RtmpError)) throw error;
    return events.malformedData(error);
  }
  events.data(read);
}

export function encodeCommand(name: string, transactionId: number, ...rest: AmfValue[]): Buffer {
  return encodeAmf0(name, transactionId, ...rest);
}

/** A body of AMF3 type is a zero byte and AMF0 values, which switch to AMF3 by marker. */
function values({ type, payload }: RtmpMessage): AmfValue[] {
  const amf3 = type === MessageType.CommandAmf3 || type === MessageType.DataAmf3;
  return decodeAmf0(amf3 && payload[0] === 0 ? payload.subarray(1) : payload);
}

export type StatusLevel = 'status' | 'warning' | 'error';

/** The information object of `onStatus`, `_result` and `_error`. */
export function statusInfo(level: StatusLevel, code: string, description: string): AmfObject {
  return { level, code, description };
}
