import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { StreamDirectory } from './stream-directory.ts';

/** Wakes waits for a stream to begin or end, on this node or another, with one listener for all. */
export class StreamChanges {
  readonly #watches = new Set<StreamWatch>();
  readonly #undo: readonly (() => void)[];

  constructor(registry: Registry, directory: Pick<StreamDirectory, 'listen'>) {
    const changed = (application: Application, input: string): void => {
      for (const watch of this.#watches) watch.changed(application, input);
    };
    const onOutput = (output: { readonly input: { readonly name: string } }, application: Application): void =>
      changed(application, output.input.name);
    const onStarting = (application: Application, { name }: { readonly name: string }): void =>
      changed(application, name);
    registry.on('output', onOutput).on('starting', onStarting);
    this.#undo = [
      () => registry.off('output', onOutput).off('starting', onStarting),
      directory.listen(({ vhost, app, stream }) => {
        const application = registry.vhosts.get(vhost)?.applications.get(app);
        if (application !== undefined) changed(application, stream);
      }),
    ];
  }

  /** Watches the input streams of an application whose names `concerns` accepts. The caller closes the watch. */
  watch(application: Application, concerns: (input: string) => boolean): StreamWatch {
    const watch = new StreamWatch(application, concerns, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    return watch;
  }

  close(): void {
    for (const undo of this.#undo) undo();
    for (const watch of [...this.#watches]) watch.close();
  }
}

/** A watch. Changes between two calls of `next` are not lost. */
export class StreamWatch {
  readonly #application: Application;
  readonly #concerns: (input: string) => boolean;
  readonly #onClose: () => void;
  readonly #onChange = (): void => this.#change();
  #hasChanged = false;
  #wake: (() => void) | undefined;

  constructor(application: Application, concerns: (input: string) => boolean, onClose: () => void) {
    this.#application = application;
    this.#concerns = concerns;
    this.#onClose = onClose;
    application.on('close', this.#onChange);
  }

  /**
   * Waits for a change since the last call (or since the watch began), at most `withinMs`, and no longer than until `signal` or
   * the end of the application.
   * @returns whether there was one
   */
  async next(withinMs: number, signal?: AbortSignal): Promise<boolean> {
    if (!this.#hasChanged && signal?.aborted !== true) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        signal?.addEventListener('abort', this.#wake, { once: true });
      });
      if (this.#wake !== undefined) signal?.removeEventListener('abort', this.#wake);
      this.#wake = undefined;
    }
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  changed(application: Application, input: string): void {
    if (application === this.#application && this.#concerns(input)) this.#change();
  }

  close(): void {
    this.#application.off('close', this.#onChange);
    this.#onClose();
    this.#wake?.();
  }

  #change(): void {
    this.#hasChanged = true;
    this.#wake?.();
  }
}
