import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { SegmenterOptions } from '../../../src/packaging/segmenter.ts';
import { mediaTime, startSegmenter } from '../media/segmenter.ts';

/** A part that was hinted at, and what became of it. */
export interface Hint {
  readonly track: MediaTrack;
  /** Media time of the newest packet when it was hinted at, in seconds. */
  readonly at: number;
  readonly hinted: string;
  /** The next part, or what was hinted at instead before one came. */
  readonly came: string;
  /** A segment begins with it, or with the other. */
  readonly atEnd: boolean;
}

/**
 * Packages packets in the order in which they arrive, and compares each hint that players see with what comes; not the one
 * of when a publisher leaves.
 */
export function hintsOf(
  tracks: readonly MediaTrack[],
  packets: readonly (Packet | 'left')[],
  options: Partial<SegmenterOptions>,
): Hint[] {
  const hints: Hint[] = [];
  const { segmenter, packager } = startSegmenter(tracks, { segmentCount: 4, ...options });
  const open = new Map<number, { readonly at: number; readonly hinted: string }>();
  const judge = (track: MediaTrack, came: string): void => {
    const hint = open.get(track.id);
    open.delete(track.id);
    if (hint !== undefined)
      hints.push({ track, ...hint, came, atEnd: [hint.hinted, came].some((name) => name.endsWith('.0')) });
  };
  for (const track of tracks) {
    packager(track.id).window.on('part', ({ msn }, { index }) => judge(track, `${msn}.${index}`));
  }
  for (const packet of packets) {
    if (packet === 'left') {
      segmenter.finish();
      open.clear();
      continue;
    }
    segmenter.push(packet);
    for (const track of tracks) {
      const { last, next } = packager(track.id).window;
      if (last === undefined || next === undefined) continue;
      const hinted = `${next.msn}.${next.part}`;
      if (open.get(track.id)?.hinted === hinted) continue;
      judge(track, hinted);
      open.set(track.id, { at: mediaTime(packet), hinted });
    }
  }
  return hints;
}
