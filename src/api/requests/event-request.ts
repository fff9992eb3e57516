import Type from 'typebox';
import { id3Tag, type Id3Frame } from '../../containers/id3.ts';
import { spliceInsert } from '../../containers/mpegts/splice.ts';
import { MAX_BREAK_MS } from '../../core/cue.ts';
import { checkInterstitial, InterstitialError } from '../../core/interstitial.ts';
import { MAX_EVENT_BYTES } from '../../core/event-limits.ts';
import type { DataCodec, DataTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { isDocument, type Document } from '../../management/documents.ts';
import { objectOf } from '../envelope.ts';

/** Events to inject into a stream, from one body. */
export interface EventOrder {
  readonly codec: DataCodec;
  readonly target: DataTrack['target'];
  /** At least one; each is an event of its own. */
  readonly events: readonly Buffer[];
}

/** Body in the description of the API; `readEvent` checks it, with texts of its own. */
export const StreamEvent = Type.Object({
  eventFormat: Type.String({ description: 'id3v2, cue, scte35 or interstitial' }),
  eventType: Type.Optional(
    Type.String({ description: 'video, audio or event: the tracks that it goes out with; event, the default, is all' }),
  ),
  eventTarget: Type.Optional(Type.String({ description: 'another word for eventType' })),
  urgent: Type.Optional(Type.Boolean({ description: 'accepted; no event waits for others' })),
  events: Type.Array(
    Type.Object({
      frameType: Type.Optional(Type.String({ description: 'id3v2: TXXX, another text frame (T???) or PRIV' })),
      info: Type.Optional(Type.String({ description: 'id3v2: the description of TXXX, the owner of PRIV' })),
      data: Type.Optional(Type.String({ description: 'id3v2' })),
      cueType: Type.Optional(Type.String({ description: 'cue: out or in' })),
      spliceCommand: Type.Optional(Type.String({ description: 'scte35: spliceInsert' })),
      id: Type.Optional(
        Type.Union([Type.Integer(), Type.String()], { description: 'scte35: splice_event_id; interstitial: its id' }),
      ),
      type: Type.Optional(Type.String({ description: 'scte35: out or in' })),
      duration: Type.Optional(
        Type.Integer({ description: 'cue, scte35, interstitial: of the break, in milliseconds' }),
      ),
      assetUri: Type.Optional(Type.String({ description: 'interstitial: URL of the asset' })),
      assetList: Type.Optional(
        Type.String({ description: 'interstitial: URL of an asset list, in place of assetUri' }),
      ),
      startOffset: Type.Optional(
        Type.Integer({ description: 'interstitial: milliseconds from the newest media until it begins' }),
      ),
      resumeOffset: Type.Optional(
        Type.Integer({ description: 'interstitial: where the stream goes on, in milliseconds from its begin' }),
      ),
      playoutLimit: Type.Optional(
        Type.Integer({ description: 'interstitial: the longest that is shown, in milliseconds' }),
      ),
      snap: Type.Optional(Type.Array(Type.String(), { description: 'interstitial: OUT, IN' })),
      restrict: Type.Optional(Type.Array(Type.String(), { description: 'interstitial: SKIP, JUMP' })),
      autoReturn: Type.Optional(Type.Boolean({ description: 'scte35: the break ends with its duration' })),
    }),
    { description: 'the frames of one ID3 tag, or cues or splices that each are an event' },
  ),
});

const FORMATS = {
  id3v2: { codec: 'ID3v2', make: (events: readonly unknown[]) => [id3Tag(events.map(frameOf))] },
  cue: { codec: 'CUE', make: (events: readonly unknown[]) => events.map(cueOf) },
  interstitial: { codec: 'INTERSTITIAL', make: (events: readonly unknown[]) => events.map(interstitialOf) },
  scte35: { codec: 'SCTE35', make: (events: readonly unknown[]) => events.map(spliceOf) },
} as const;

/** Limit of frames of a tag, and of events of a body. */
const MAX_EVENTS = 100;
const TICKS_PER_MS = 90;

/**
 * Checks the body of `:sendEvent`, with the texts of OvenMediaEngine (docs/compatibility.md#events).
 * @throws bodyNotObject, eventInvalid
 */
export function readEvent(body: unknown): EventOrder {
  const given = objectOf(body);
  const { eventFormat, events, eventTarget, eventType = eventTarget ?? 'event' } = given;
  if (typeof eventFormat !== 'string' || !Array.isArray(events))
    throw kilnError('eventInvalid', 'eventFormat(string) and events(array) are required');
  const format = eventFormat.toLowerCase();
  if (!isFormat(format)) throw kilnError('eventInvalid', `eventFormat is not supported: [${eventFormat}]`);
  if (events.length === 0 || events.length > MAX_EVENTS) throw unusable();
  const { codec, make } = FORMATS[format];
  const made = make(events);
  if (made.some(({ length }) => length > MAX_EVENT_BYTES)) throw unusable();
  if (typeof eventType !== 'string') throw kilnError('eventInvalid', 'eventType must be string');
  const type = eventType.toLowerCase();
  if (type !== 'event' && type !== 'video' && type !== 'audio')
    throw kilnError('eventInvalid', `eventType is not supported: [${eventType}]`);
  return { codec, target: type === 'event' ? undefined : type, events: made };
}

/** Reads the bodies of `:sendEvents`. @throws eventInvalid, batchTooLong */
export function eventBodies(body: unknown): readonly unknown[] {
  if (!Array.isArray(body) || body.length === 0) throw kilnError('eventInvalid', 'events(array) is required');
  if (body.length > MAX_EVENTS) throw kilnError('batchTooLong', MAX_EVENTS);
  return body;
}

function isFormat(format: string): format is keyof typeof FORMATS {
  return Object.hasOwn(FORMATS, format);
}

function unusable() {
  return kilnError('eventInvalid', 'Could not make events data');
}

function documentOf(event: unknown): Document {
  if (!isDocument(event)) throw unusable();
  return event;
}

function frameOf(event: unknown): Id3Frame {
  const { frameType, info = '', data = '' } = documentOf(event);
  if (typeof frameType !== 'string') throw kilnError('eventInvalid', 'frameType is required in events');
  const id = frameType.toUpperCase();
  if (id !== 'PRIV' && !/^T[A-Z\d]{3}$/.test(id))
    throw kilnError('eventInvalid', `frameType is not supported: [${frameType}]`);
  if (typeof info !== 'string' || typeof data !== 'string' || info.includes('\0')) throw unusable();
  if (id === 'TXXX') return { id, description: info, value: data };
  if (id !== 'PRIV') return { id, text: data };
  if (Buffer.from(info, 'latin1').toString('latin1') !== info) throw unusable();
  return { id, owner: info, data: Buffer.from(data) };
}

function cueOf(event: unknown): Buffer {
  const { cueType, duration } = documentOf(event);
  const type = directionOf(cueType);
  const cue = type === 'out' ? { cueType: type, duration: milliseconds(duration, 1) } : { cueType: type };
  return Buffer.from(JSON.stringify(cue));
}

function spliceOf(event: unknown): Buffer {
  const { spliceCommand = 'spliceInsert', id, type, duration, autoReturn = false } = documentOf(event);
  const isInsert = typeof spliceCommand === 'string' && /^splice_?insert$/i.test(spliceCommand);
  const isId = Number.isInteger(id) && (id as number) >= 0 && (id as number) < 2 ** 32;
  if (!isInsert || !isId || typeof autoReturn !== 'boolean') throw unusable();
  return spliceInsert({
    id: id as number,
    out: directionOf(type) === 'out',
    autoReturn,
    ...(duration !== undefined && { duration: milliseconds(duration, 0) * TICKS_PER_MS }),
  });
}

function interstitialOf(event: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(checkInterstitial(event)));
  } catch (error) {
    throw error instanceof InterstitialError ? kilnError('eventInvalid', error.message) : error;
  }
}

function directionOf(value: unknown): 'out' | 'in' {
  const direction = typeof value === 'string' ? value.toLowerCase() : undefined;
  if (direction !== 'out' && direction !== 'in') throw unusable();
  return direction;
}

function milliseconds(value: unknown, least: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > MAX_BREAK_MS) throw unusable();
  return value as number;
}
