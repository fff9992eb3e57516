import type { Encoding } from './encoding.ts';
import type { Feed } from './feed.ts';
import type { Output } from './output.ts';

type Heard = Pick<Output, 'job' | 'resumeAt' | 'reached' | 'lastAt' | 'ended'>;

/** Seconds of its input that every encoder may keep to itself, besides what its options tell. */
const USUAL_DELAY = 5;
/** Taken for a frame rate that nobody knows. */
const SLOW_RATE = 5;

/**
 * The outputs that should have put out something and did not for a while.
 * @param now by `performance.now()`
 */
export function silentOutputs<T extends Heard>(
  outputs: readonly T[],
  feed: Pick<Feed, 'fed'>,
  now: number,
  hangMs: number,
): T[] {
  return outputs.filter((output) => {
    if (output.ended || now - output.lastAt < hangMs) return false;
    const {
      job: { from, encoding },
      resumeAt,
      reached,
    } = output;
    const fed = feed.fed(from);
    if (fed === undefined) return false;
    const since = Math.max(fed.from, resumeAt ?? -Infinity, reached ?? -Infinity);
    return fed.to - since > delayOf(encoding);
  });
}

/** How far an encoder's output may be behind its input, in seconds. */
function delayOf(encoding: Encoding): number {
  if (encoding.type === 'audio') return USUAL_DELAY;
  const { framerate, skipFrames = 0 } = encoding;
  const frame = framerate > 0 ? 1 / framerate : (skipFrames + 1) / SLOW_RATE;
  const held = encoding.type === 'image' ? 0 : Math.max(0, encoding.lookahead) + encoding.bFrames + encoding.threads;
  return USUAL_DELAY + frame * (2 + Math.max(0, held));
}
