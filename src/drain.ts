import type { Registry } from './core/registry.ts';

/** Resolves when no source has a stream here any more, live or about to be, or when the signal aborts. */
export function emptied(registry: Registry, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!signal.aborted && hasInputs(registry)) return;
      registry.off('starting', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    registry.on('starting', look);
    signal.addEventListener('abort', look);
    look();
  });
}

function hasInputs({ vhosts }: Registry): boolean {
  return [...vhosts.values()].some(({ applications }) => [...applications.values()].some(({ inUse }) => inUse));
}
