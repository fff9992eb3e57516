import { box, fullBox, u32, u64 } from './box.ts';

/** Part of a track that is shown, and its time. */
export interface Edit {
  /** Empty time before, in ticks of the movie. */
  readonly empty: number;
  /** In ticks of the movie. */
  readonly duration: number;
  /** First time that is shown, in ticks of the track. */
  readonly mediaTime: number;
}

const EMPTY = u32(0xffff_ffff, 0xffff_ffff, 0x10000);
const NORMAL_RATE = u32(0x10000);

/** Builds `edts` (ISO/IEC 14496-12, 8.6.5). */
export function editList({ empty, duration, mediaTime }: Edit): Buffer {
  const shown = [u64(duration, mediaTime), NORMAL_RATE];
  const entries = empty > 0 ? [u32(2), u64(empty), EMPTY, ...shown] : [u32(1), ...shown];
  return box('edts', fullBox('elst', 1, 0, ...entries));
}
