import { fragment, type Sample } from '../containers/fmp4/fragment.ts';
import { isPackable, UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../core/track.ts';
import { describe } from './description.ts';
import type { Init } from './segment.ts';

/** What the parts of a package are. */
export interface PartForm<Data> {
  /** @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used */
  describe(track: MediaTrack, version: number): Init;
  /**
   * @param sequence number of the part in its track, from 1
   * @param start decode time of the first sample in ticks, not negative
   */
  part(
    type: 'video' | 'audio',
    sequence: number,
    start: number,
    samples: readonly Sample[],
  ): { readonly data: Data; readonly bytes: number };
}

/** Fragments of fragmented MP4, each with its bytes. */
export const FRAGMENTS: PartForm<Buffer> = {
  describe: (track, version) => {
    if (!isPackable(track)) throw new UnsupportedTrackError(`${track.codec} cannot be carried in HLS`);
    return describe(track, version);
  },
  part: (type, sequence, start, samples) => {
    const data = fragment(type, sequence, start, samples);
    return { data, bytes: data.length };
  },
};
