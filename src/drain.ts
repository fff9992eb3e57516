import { setTimeout as delay } from 'node:timers/promises';
import type { Registry } from './core/registry.ts';

const LOOK_EVERY_MS = 100;

/** Resolves when no source has a stream here any more, live or about to be, or when the signal aborts. */
export async function emptied(registry: Registry, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && hasInputs(registry))
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
}

function hasInputs({ vhosts }: Registry): boolean {
  return [...vhosts.values()].some(({ applications }) => [...applications.values()].some(({ inUse }) => inUse));
}
