import { emsg } from '../containers/fmp4/emsg.ts';
import { fragment, type Sample } from '../containers/fmp4/fragment.ts';
import { isPackable, UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { DataCodec, MediaTrack } from '../core/track.ts';
import { describe } from './initialization.ts';
import type { TimedEvent } from './part-events.ts';
import type { Init } from './segment.ts';

/** The format of the parts of a package. */
export interface PartForm<Data> {
  /** Whether players get parts before their segment is complete. If so, a part may end on a prediction, before the next frame arrives. */
  readonly early: boolean;
  /** Codecs of the events that parts carry. */
  readonly carries: ReadonlySet<DataCodec>;
  /** Seconds: a segment starting at or after this time begins a new timeline, after a discontinuity. */
  readonly range: number;
  /**
   * @param msn of the first segment that it is for; absent: the next one
   * @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used
   */
  describe(track: MediaTrack, version: number, msn?: number): Init;
  /** Whether a segment needs another initialization than those before it, though its track is the same. Absent: never. */
  isOver?(init: Init, msn: number): boolean;
  /**
   * @param track of the samples
   * @param init of the segment
   * @param sequence number of the part in its track, from 1
   * @param start decode time of the first sample in ticks, not negative
   * @param events on the timeline of the samples
   */
  part(
    track: MediaTrack,
    init: Init,
    sequence: number,
    start: number,
    samples: readonly Sample[],
    events: readonly TimedEvent[],
  ): { readonly data: Data; readonly bytes: number };
}

/** Schemes that identify an event to players ("Carriage of ID3 Timed Metadata in CMAF"; SCTE 214-3). */
const SCHEMES: ReadonlyMap<DataCodec, { readonly scheme: string; readonly value: string }> = new Map([
  // the value that OvenMediaEngine's players know (docs/compatibility.md#events)
  ['ID3v2', { scheme: 'https://aomedia.org/emsg/ID3', value: 'OvenMediaEngine' }],
  ['SCTE35', { scheme: 'urn:scte:scte35:2013:bin', value: '' }],
]);

/** Fragments of fragmented MP4, each with its bytes. */
export const FRAGMENTS: PartForm<Buffer> = {
  early: true,
  carries: new Set(SCHEMES.keys()),
  // decode times have 64 bits
  range: Infinity,
  describe: (track, version) => {
    if (!isPackable(track)) throw new UnsupportedTrackError(`${track.codec} cannot be carried in HLS`);
    return describe(track, version);
  },
  part: ({ type }, _init, sequence, start, samples, events) => {
    const data = fragment(type, sequence, start, samples, emsgsOf(events));
    return { data, bytes: data.length };
  },
};

/** Boxes `emsg` of events whose codecs fragments carry. */
export function emsgsOf(events: readonly TimedEvent[]): Buffer[] {
  return events.flatMap(({ id, track, time, data }) => {
    const scheme = SCHEMES.get(track.codec);
    // the first frame of a part may be shown before the timeline begins
    const milliseconds = Math.max(0, Math.ceil(time * 1000 - 1e-3));
    return scheme === undefined ? [] : [emsg({ ...scheme, time: milliseconds, id, message: data })];
  });
}
