import { BitstreamError } from '../codecs/bits.ts';
import type { Sample } from '../containers/fmp4/fragment.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import { formOf, isForeseen } from '../containers/mpegts/elementary-form.ts';
import type { DataCodec, MediaTrack } from '../core/track.ts';
import { codecString } from './codec-string.ts';
import type { TimedEvent } from './part-events.ts';
import type { PartForm } from './part-form.ts';

/** Consecutive frames of one track, written as bytes on request. Times in ticks. */
export class FrameRun {
  /** Decode time of the first sample. */
  readonly start: number;
  /** Events of the run, on the same timeline. */
  readonly events: readonly TimedEvent[];
  #samples: readonly Sample[];
  #users = 0;

  constructor(start: number, samples: readonly Sample[], events: readonly TimedEvent[] = []) {
    this.start = start;
    this.events = events;
    this.#samples = samples;
  }

  /** Empty after the last `release`. */
  get samples(): readonly Sample[] {
    return this.#samples;
  }

  /** Adds a user, which must call `release`. */
  keep(): void {
    this.#users++;
  }

  /** Removes a user; the last one frees the frames. */
  release(): void {
    if (--this.#users === 0) this.#samples = [];
  }
}

const MPEG_AUDIO_LAYER_3 = 'mp4a.40.34';
/** Codecs that HLS players support in MPEG-TS (RFC 8216 3.2, "HLS Authoring Specification for Apple Devices"). */
const CODECS = new Set<string>(['H264', 'H265', 'AAC', 'MP3', 'AC3', 'EAC3']);

/** Whether HLS in MPEG-TS can carry a codec. */
export function isTsPackable({ codec }: { readonly codec: string }): boolean {
  return CODECS.has(codec);
}

/**
 * Times in MPEG-TS have 33 bits at 90 kHz, 95443 s, and players may stop where they wrap (Shaka Player 5.2). A segment
 * that begins before this limit ends before they wrap.
 */
const RANGE_SECONDS = 95_000;

/** Parts kept as frames, for MPEG-TS. */
export const RUNS: PartForm<FrameRun> = {
  early: false,
  carries: new Set<DataCodec>(['ID3v2', 'SCTE35', 'KLV']),
  range: RANGE_SECONDS,
  describe: (track, version) => {
    if (!isTsPackable(track)) throw new UnsupportedTrackError(`${track.codec} cannot be carried in HLS with MPEG-TS`);
    try {
      formOf(track);
    } catch (error) {
      throw isForeseen(error) && !(error instanceof BitstreamError) ? new UnsupportedTrackError(error.message) : error;
    }
    return { version, track, codec: codecOf(track), data: Buffer.alloc(0) };
  },
  part: (_track, _init, _sequence, start, samples, events) => ({
    data: new FrameRun(start, samples, events),
    bytes: [...samples, ...events].reduce((sum, { data }) => sum + data.length, 0),
  }),
};

function codecOf(track: MediaTrack): string {
  switch (track.codec) {
    case 'MP3':
      return MPEG_AUDIO_LAYER_3;
    case 'AC3':
      return 'ac-3';
    case 'EAC3':
      return 'ec-3';
    default:
      // parameter sets are always in band in MPEG-TS
      return codecString(track.type === 'video' ? { ...track, inBandSets: undefined } : track);
  }
}
