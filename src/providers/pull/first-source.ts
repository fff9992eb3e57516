import { BackOff } from '../../lib/back-off.ts';
import { pause } from '../../lib/pause.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import { LONGEST_PAUSE_MS } from './pull.ts';
import type { PullSource } from './source.ts';
import type { PullSpec } from './spec.ts';

/** Connection to an origin that has a stream, and the index of its URL in the stream's list. */
export interface FirstSource {
  readonly at: number;
  readonly source: PullSource;
}

/**
 * Connects to the first origin that has a stream, in up to `retryCount` rounds through its URLs.
 * @throws PullError why none of them has it, or that the signal aborted
 */
export async function firstSource(
  { urls, retryCount }: PullSpec,
  open: (url: string) => Promise<PullSource>,
  signal: AbortSignal,
): Promise<FirstSource> {
  const backOff = new BackOff(LONGEST_PAUSE_MS);
  const tries = urls.length * Math.max(1, retryCount);
  const reasons = new Map<string, string>();
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    const at = attempt % urls.length;
    const url = urls[at] as string;
    if (attempt > 0 && at === 0) await pause(backOff.next(), signal);
    try {
      return { at, source: await opened(open(url), signal) };
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

/** Waits for a source, and closes one that comes after the signal has aborted. @throws PullError then */
async function opened(opening: Promise<PullSource>, signal: AbortSignal): Promise<PullSource> {
  const source = await unlessAborted(opening, signal);
  if (source !== undefined) return source;
  void opening.then(
    (late) => late.close(),
    () => undefined,
  );
  throw new PullError('the pull was ended');
}
