import { setTimeout as delay } from 'node:timers/promises';

const EVERY_MS = 50;
/** No more than a guard against hanging: a server may take a minute to start on a slow machine that is busy. */
export const PATIENCE_MS = 180_000;

/**
 * Waits until `probe` answers something else than undefined or false, and answers it.
 * @throws Error naming `what` when it takes longer than `withinMs`
 */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = PATIENCE_MS,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await delay(EVERY_MS);
  }
}

/**
 * Waits until `attempt` does not throw, and answers what it answers.
 * @throws Error naming `what`, caused by what was thrown last, when it takes longer than `withinMs`
 */
export async function untilWorks<T>(what: string, attempt: () => Promise<T>, withinMs = PATIENCE_MS): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) throw new Error(`not in time: ${what}: ${error}`, { cause: error });
    }
    await delay(EVERY_MS);
  }
}
