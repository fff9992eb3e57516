import type { OutputStream } from '../../../src/core/output-stream.ts';
import { playlistOf, tracksOf } from '../../../src/publishers/srt/selection.ts';
import type { TsFeedOptions } from '../../../src/publishers/ts/feed.ts';

/** Options of a feed of the tracks that SRT players get by default. */
export function ofDefaultTracks(output: OutputStream, more: Partial<TsFeedOptions> = {}): TsFeedOptions {
  return {
    kind: 'srt',
    choose: (tracks) => tracksOf(tracks, playlistOf(output)),
    delayMs: 0,
    keepsStart: false,
    leftOut: () => {},
    onEnd: () => {},
    ...more,
  };
}
