import { BackOff } from '../../lib/back-off.ts';
import { pause } from '../../lib/pause.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import { LONGEST_PAUSE_MS } from './pull.ts';
import type { Opening } from './opening.ts';
import type { PullSpec } from './spec.ts';

/** Connection to an origin that has a stream, and the index of its URL in the stream's list. */
export interface FirstSource {
  readonly at: number;
  readonly opening: Opening;
}

/**
 * Connects to the first origin that has a stream, in up to `retryCount` rounds through its URLs.
 * @throws PullError why none of them has it, or that the signal aborted
 */
export async function firstSource(
  { urls, retryCount }: PullSpec,
  open: (url: string) => Opening,
  signal: AbortSignal,
): Promise<FirstSource> {
  const backOff = new BackOff(LONGEST_PAUSE_MS);
  const tries = urls.length * Math.max(1, retryCount);
  const reasons = new Map<string, string>();
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    const at = attempt % urls.length;
    const url = urls[at] as string;
    if (attempt > 0 && at === 0) await pause(backOff.next(), signal);
    const opening = open(url);
    try {
      if ((await unlessAborted(opening.source, signal)) !== undefined) return { at, opening };
      opening.close();
    } catch (error) {
      reasons.set(url, (error as Error).message);
    }
  }
  throw new PullError(signal.aborted ? 'the pull was ended' : joined(reasons));
}

/** One line of reasons: each with its URL, unless all are the same. */
function joined(reasons: ReadonlyMap<string, string>): string {
  const distinct = new Set(reasons.values());
  if (distinct.size === 1) return [...distinct].join('');
  return Array.from(reasons, ([url, reason]) => `${shownUrl(url)}: ${reason}`).join('; ');
}
