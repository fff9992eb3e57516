import { setTimeout as delay } from 'node:timers/promises';

const FIRST_MS = 30_000;
const LONGEST_MS = 240_000;
/** Share of a pause by which it varies, so that nodes do not ask all at once. */
const SPREAD = 0.25;

/** Looks for a better sender ever less often until `signal` is aborted. */
export async function lookForPlace(look: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    const spread = 1 + SPREAD * (2 * Math.random() - 1);
    await delay(pause * spread, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return;
    await look();
  }
}
