import { AUDIO_FOUR_CC } from '../../containers/flv/audio.ts';
import { VIDEO_FOUR_CC } from '../../containers/flv/video.ts';
import type { AmfObject } from '../../protocols/rtmp/amf-value.ts';

/**
 * Enhanced RTMP v2, "Enhancing NetConnection connect Command": several tracks, modifiers and nanosecond offsets are
 * understood, and a client that understands it is asked to reconnect.
 */
const CAPS_EX = 0b1111;
const RECONNECT = 0b1;
/** The server passes the codec on; it neither decodes nor encodes it. */
const CAN_FORWARD = 0b100;

/** Whether a client announces in its `connect` that it can be asked to reconnect. */
export function canReconnect({ capsEx }: AmfObject): boolean {
  return typeof capsEx === 'number' && (capsEx & RECONNECT) !== 0;
}

/**
 * The properties of the answer to `connect`. Encoders look for a version of the form that Flash servers send.
 * @param extended Enhanced RTMP is offered
 */
export function connectionProperties(extended: boolean): AmfObject {
  const properties: AmfObject = { fmsVer: 'FMS/3,5,7,7009', capabilities: 31, mode: 1 };
  if (!extended) return properties;
  return {
    ...properties,
    fourCcList: [...Object.keys(VIDEO_FOUR_CC), ...Object.keys(AUDIO_FOUR_CC)],
    videoFourCcInfoMap: forwarded(VIDEO_FOUR_CC),
    audioFourCcInfoMap: forwarded(AUDIO_FOUR_CC),
    capsEx: CAPS_EX,
  };
}

function forwarded(codecs: Readonly<Record<string, unknown>>): AmfObject {
  return Object.fromEntries(Object.keys(codecs).map((fourCc) => [fourCc, CAN_FORWARD]));
}
