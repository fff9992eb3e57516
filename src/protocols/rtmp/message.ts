import { RtmpError } from './error.ts';

/** Message type ids (RTMP specification sections 5.4 and 7.1). */
export const MessageType = {
  SetChunkSize: 1,
  Abort: 2,
  Acknowledgement: 3,
  UserControl: 4,
  WindowAckSize: 5,
  SetPeerBandwidth: 6,
  Audio: 8,
  Video: 9,
  DataAmf3: 15,
  CommandAmf3: 17,
  DataAmf0: 18,
  CommandAmf0: 20,
  Aggregate: 22,
} as const;

/** User control event types (section 7.1.7). */
export const UserControl = {
  StreamBegin: 0,
  StreamEof: 1,
  SetBufferLength: 3,
  PingRequest: 6,
  PingResponse: 7,
} as const;

export interface RtmpMessage {
  readonly type: number;
  /** Message stream id: 0 for the connection itself. */
  readonly streamId: number;
  /** Milliseconds, modulo 2^32. */
  readonly timestamp: number;
  /** Owned by the receiver: the bytes do not change any more. */
  readonly payload: Buffer;
}

/** The body of the messages that carry one number: chunk size, acknowledgement, window, abort. */
export function encodeNumber(value: number): Buffer {
  const out = Buffer.allocUnsafe(4);
  out.writeUInt32BE(value >>> 0);
  return out;
}

/** @throws RtmpError when the body is cut off */
export function decodeNumber({ payload, type }: RtmpMessage): number {
  if (payload.length < 4) throw new RtmpError(`message of type ${type} is cut off`);
  return payload.readUInt32BE(0);
}

/** SetPeerBandwidth with the limit type `dynamic`. */
export function encodePeerBandwidth(window: number): Buffer {
  return Buffer.concat([encodeNumber(window), Buffer.of(2)]);
}

/** A user control event with a 4-byte argument: stream id or ping time. */
export function encodeUserControl(event: number, argument: number): Buffer {
  const out = Buffer.allocUnsafe(6);
  out.writeUInt16BE(event);
  out.writeUInt32BE(argument >>> 0, 2);
  return out;
}

/** The user control event by which a player names its buffer for a stream, in milliseconds. */
export function encodeBufferLength(streamId: number, milliseconds: number): Buffer {
  return Buffer.concat([encodeUserControl(UserControl.SetBufferLength, streamId), encodeNumber(milliseconds)]);
}

const TAG_HEADER_BYTES = 11;
const TAG_TRAILER_BYTES = 4;

/**
 * The messages inside an aggregate (section 7.1.6). Their times are moved so that the first has the
 * time of the aggregate. Nested aggregates are refused.
 * @throws RtmpError when it is malformed; what came before has been given
 */
export function* splitAggregate({ payload, timestamp, streamId }: RtmpMessage): Iterable<RtmpMessage> {
  let shift: number | undefined;
  for (let at = 0; at < payload.length;) {
    if (payload.length - at < TAG_HEADER_BYTES) throw new RtmpError('aggregate message is cut off');
    const type = payload.readUInt8(at);
    if (type === MessageType.Aggregate) throw new RtmpError('aggregate message inside another');
    const length = payload.readUIntBE(at + 1, 3);
    const time = payload.readUIntBE(at + 4, 3) + payload.readUInt8(at + 7) * 0x1000000;
    const start = at + TAG_HEADER_BYTES;
    if (length > payload.length - start) throw new RtmpError('aggregate message is cut off');
    shift ??= timestamp - time;
    yield { type, streamId, timestamp: (time + shift) >>> 0, payload: payload.subarray(start, start + length) };
    at = start + length + TAG_TRAILER_BYTES;
  }
}
