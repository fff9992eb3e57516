import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';

/**
 * Limit of the time that viewers are kept while another node takes over the stream: as long as other nodes wait for
 * it.
 */
const MOVING_MS = 5000;

/** Resolves when no source has or is about to have a stream here, or when the signal aborts. */
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

/** Streams that a node hands over from now on. */
export class HandedOver {
  readonly #directory: Pick<StreamDirectory, 'known' | 'listen'>;
  readonly #left: { readonly application: Application; readonly name: string }[] = [];

  constructor(registry: Registry, directory: Pick<StreamDirectory, 'known' | 'listen'>) {
    this.#directory = directory;
    for (const application of applicationsOf(registry)) {
      for (const { name, input } of application.outputs.values())
        input.once('close', () => {
          if (input.handsOver && !input.continuity.over) this.#left.push({ application, name });
        });
    }
  }

  /**
   * Resolves when other nodes own the streams and viewers can continue there, after some seconds, or when the signal
   * aborts.
   */
  async settled(signal: AbortSignal): Promise<void> {
    const end = AbortSignal.any([signal, AbortSignal.timeout(MOVING_MS)]);
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      const isMoving = this.#left.some(
        ({ application, name }) => this.#directory.known(application, name) === undefined,
      );
      if (!isMoving || end.aborted) resolve();
    };
    const unlisten = this.#directory.listen(look);
    end.addEventListener('abort', look);
    look();
    await promise;
    end.removeEventListener('abort', look);
    unlisten();
  }
}

function hasInputs(registry: Registry): boolean {
  return applicationsOf(registry).some(({ inUse }) => inUse);
}

function applicationsOf({ vhosts }: Registry): Application[] {
  return [...vhosts.values()].flatMap(({ applications }) => [...applications.values()]);
}
