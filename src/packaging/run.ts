import { BitstreamError } from '../codecs/bits.ts';
import type { Sample } from '../containers/fmp4/fragment.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import { formOf, isForeseen } from '../containers/mpegts/elementary-form.ts';
import type { MediaTrack } from '../core/track.ts';
import { codecString } from './codec-string.ts';
import type { TimedEvent } from './part-events.ts';
import type { PartForm } from './part-form.ts';

/** Frames of one track that follow each other: what becomes bytes when somebody asks for it. Times in ticks. */
export class Run {
  /** Decode time of the first sample. */
  readonly start: number;
  /** That go out with it, on the same timeline. */
  readonly events: readonly TimedEvent[];
  #samples: readonly Sample[];
  #users = 0;

  constructor(start: number, samples: readonly Sample[], events: readonly TimedEvent[] = []) {
    this.start = start;
    this.events = events;
    this.#samples = samples;
  }

  /** Empty when all who kept it have released it. */
  get samples(): readonly Sample[] {
    return this.#samples;
  }

  /** It is to be used once more. */
  keep(): void {
    this.#users++;
  }

  /** It was used. The last one that needed it lets go of the frames. */
  release(): void {
    if (--this.#users === 0) this.#samples = [];
  }
}

const MPEG_AUDIO_LAYER_3 = 'mp4a.40.34';
/** What players of HLS take in MPEG-TS (RFC 8216 3.2, "HLS Authoring Specification for Apple Devices"). */
const CODECS = new Set<string>(['H264', 'H265', 'AAC', 'MP3', 'AC3', 'EAC3']);

/** Whether HLS in MPEG-TS has a place for tracks of this codec. */
export function isTsPackable({ codec }: { readonly codec: string }): boolean {
  return CODECS.has(codec);
}

/**
 * Times in MPEG-TS have 33 bits of 90 kHz, 95443 s, and players may stop where they wrap (Shaka Player 5.2). A segment that
 * begins before this ends before that.
 */
const RANGE_SECONDS = 95_000;

/** Parts that stay frames. */
export const RUNS: PartForm<Run> = {
  early: false,
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
  part: (_type, _sequence, start, samples, events) => ({
    data: new Run(start, samples, events),
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
      // a transport stream has its parameter sets in band anyway
      return codecString(track.type === 'video' ? { ...track, inBandSets: undefined } : track);
  }
}
