/** An event of the CUE codec: an ad break begins, for some milliseconds, or ends. */
export interface Cue {
  readonly cueType: 'out' | 'in';
  /** Milliseconds, of `out`. */
  readonly duration?: number;
}

/** Longest ad break, in milliseconds. */
export const MAX_BREAK_MS = 24 * 3600 * 1000;

/** Reads the data of a CUE packet; undefined where it is not one, or begins a break of no length or of more than a day. */
export function readCue(data: Buffer): Cue | undefined {
  let cue: Partial<Record<keyof Cue, unknown>> | null;
  try {
    cue = JSON.parse(data.toString()) as typeof cue;
  } catch {
    return undefined;
  }
  if (cue === null || typeof cue !== 'object') return undefined;
  if (cue.cueType === 'in') return { cueType: 'in' };
  const { cueType, duration } = cue;
  const isBreak = typeof duration === 'number' && duration > 0 && duration <= MAX_BREAK_MS;
  return cueType === 'out' && isBreak ? { cueType, duration } : undefined;
}
