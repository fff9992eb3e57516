import type { Json } from '#cluster';
import type { ApplicationConfig } from '../config/model.ts';
import type { Logger } from '../log/log.ts';
import type { PlacedKind } from './kind.ts';

/** Whether this node has what a task needs. Its kind is asked once for each spec, and again after `forget`. */
export class Fitness {
  readonly #onFit: () => void;
  readonly #log: Logger;
  #asked: { readonly spec: Json; suits: boolean } | undefined;

  /** @param onFit called when it becomes known that this node has what the task needs */
  constructor(onFit: () => void, log: Logger) {
    this.#onFit = onFit;
    this.#log = log;
  }

  /** Whether this node has what the task needs; false until that is known. */
  of(kind: PlacedKind, spec: Json, application: ApplicationConfig): boolean {
    if (kind.suits === undefined) return true;
    if (this.#asked?.spec === spec) return this.#asked.suits;
    const asked = { spec, suits: false };
    this.#asked = asked;
    kind.suits(spec, application).then(
      (suits) => {
        asked.suits = suits;
        if (suits && this.#asked === asked) this.#onFit();
      },
      (error: unknown) =>
        this.#log.error({ kind: kind.name, err: error }, 'this node does not know whether it has what a task needs'),
    );
    return false;
  }

  forget(): void {
    this.#asked = undefined;
  }
}
