import { AUDIO_FOUR_CC } from '../../containers/flv/audio.ts';
import { VIDEO_FOUR_CC } from '../../containers/flv/video.ts';
import { isAmfObject, type AmfObject, type AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';

/**
 * Enhanced RTMP v2, "Enhancing NetConnection connect Command": several tracks, modifiers and nanosecond offsets are
 * understood, and a client that understands it is asked to reconnect.
 */
const CAPS_EX = 0b1111;
const RECONNECT = 0b1;
const MULTITRACK = 0b10;
/** Uses of a codec by a player: it decodes it, or passes it on. */
const CAN_DECODE = 0b1;
/** The server passes the codec on; it neither decodes nor encodes it. */
const CAN_FORWARD = 0b100;
const FOUR_CCS = [...Object.keys(VIDEO_FOUR_CC), ...Object.keys(AUDIO_FOUR_CC)];

/** Whether a client announces in its `connect` that it can be asked to reconnect. */
export function canReconnect({ capsEx }: AmfObject): boolean {
  return typeof capsEx === 'number' && (capsEx & RECONNECT) !== 0;
}

/** Reads from a `connect` what the client takes as a player. @param extended Enhanced RTMP is offered */
export function abilityOf(object: AmfObject, extended: boolean): PlayerAbility {
  const { capsEx } = object;
  const isTaken = (fourCc: string): boolean =>
    isListed(object.fourCcList, fourCc) ||
    [object.videoFourCcInfoMap, object.audioFourCcInfoMap].some((map) => isDecoded(map, fourCc));
  return {
    fourCcs: new Set(extended ? FOUR_CCS.filter(isTaken) : []),
    multitrack: extended && typeof capsEx === 'number' && (capsEx & MULTITRACK) !== 0,
  };
}

/** FourCC that stands for every one. */
const ANY = '*';

function isListed(list: AmfValue, fourCc: string): boolean {
  return Array.isArray(list) && (list.includes(fourCc) || list.includes(ANY));
}

function isDecoded(map: AmfValue, fourCc: string): boolean {
  if (!isAmfObject(map)) return false;
  const uses = map[fourCc] ?? map[ANY];
  return typeof uses === 'number' && (uses & (CAN_DECODE | CAN_FORWARD)) !== 0;
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
    fourCcList: [...FOUR_CCS],
    videoFourCcInfoMap: forwarded(VIDEO_FOUR_CC),
    audioFourCcInfoMap: forwarded(AUDIO_FOUR_CC),
    capsEx: CAPS_EX,
  };
}

function forwarded(codecs: Readonly<Record<string, unknown>>): AmfObject {
  return Object.fromEntries(Object.keys(codecs).map((fourCc) => [fourCc, CAN_FORWARD]));
}
