import type { Encoding } from './encoding.ts';
import type { Feed } from './feed.ts';
import type { Output } from './output.ts';

type Heard = Pick<Output, 'job' | 'resumeAt' | 'reached' | 'lastAt' | 'ended'>;

/** Seconds of input that any encoder may hold, besides what its options imply. */
const USUAL_DELAY = 5;
/** Frames per second assumed if the rate is unknown. */
const SLOW_RATE = 5;

/**
 * Finds outputs that were given input and have written nothing for `hangMs`.
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

/** Seconds that an encoder's output may be behind its input. */
function delayOf(encoding: Encoding): number {
  if (encoding.type === 'audio') return USUAL_DELAY;
  const { framerate, skipFrames = 0 } = encoding;
  const frame = framerate > 0 ? 1 / framerate : (skipFrames + 1) / SLOW_RATE;
  const held = encoding.type === 'image' ? 0 : Math.max(0, encoding.lookahead) + encoding.bFrames + encoding.threads;
  return USUAL_DELAY + frame * (2 + Math.max(0, held));
}
