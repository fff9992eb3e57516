import { UnavailableError, type Json } from '#cluster';
import { TimedLease, type LeaseStart } from '../../../cluster/timed-lease.ts';
import type { Held, Renewal } from './store.ts';

/** How a lease reaches the store. All throw UnavailableError where it cannot be reached. */
export interface LeaseKeeper {
  update(lease: MemoryLease): Promise<boolean>;
  keep(lease: MemoryLease, value: Json): Promise<boolean>;
  release(lease: MemoryLease): Promise<void>;
}

/** A lease of a node of a cluster in memory, valid as long as its node's beats are answered. */
export class MemoryLease extends TimedLease {
  readonly #keeper: LeaseKeeper;

  constructor(start: LeaseStart, keeper: LeaseKeeper) {
    super(start);
    this.#keeper = keeper;
  }

  renewal(): Renewal {
    const { key, token, fence, meta, options, kept } = this;
    return { key, token, fence, meta, keepMs: options.keepMs ?? 0, kept };
  }

  override async update(meta: Json): Promise<void> {
    this.checkHeld();
    this.current.meta = copied(meta);
    await this.#confirm(await this.#keeper.update(this));
  }

  override async keep(value: Json): Promise<void> {
    this.checkHeld();
    const kept = copied(value);
    this.current.kept = kept;
    await this.#confirm(await this.#keeper.keep(this, kept));
  }

  /** The store has it, perhaps by a new fence. */
  confirm({ owner }: Held): void {
    this.current.fence = owner.fence;
  }

  protected override async withdraw(): Promise<void> {
    await this.#keeper.release(this);
  }

  async #confirm(done: boolean): Promise<void> {
    this.signal.throwIfAborted();
    if (!done) throw new UnavailableError(`the lease of ${this.key} is not confirmed yet`);
  }
}

/** As it comes out of a store: JSON has no undefined, and nobody else has the object. */
export function copied(value: Json): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
