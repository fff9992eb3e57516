import { LostError, UnavailableError, type ClaimOptions, type Json, type Lease, type Owner } from '#cluster';
import type { Held, Renewal } from './store.ts';

/** How a lease reaches the store. All throw UnavailableError where it cannot be reached. */
export interface LeaseKeeper {
  update(lease: MemoryLease): Promise<boolean>;
  keep(lease: MemoryLease, value: Json): Promise<boolean>;
  release(lease: MemoryLease): Promise<void>;
}

export interface LeaseStart {
  readonly key: string;
  readonly token: string;
  readonly meta: Json;
  readonly inherited: Json | undefined;
  /** 0 of one that the store does not know of. */
  readonly fence: number;
  readonly options: ClaimOptions;
  /** On the monotonic clock, in milliseconds. */
  readonly validUntil: number;
}

/** A lease of a node of a cluster in memory, valid as long as its node's beats are answered. */
export class MemoryLease implements Lease {
  readonly key: string;
  readonly token: string;
  readonly inherited: Json | undefined;
  readonly options: ClaimOptions;
  readonly #keeper: LeaseKeeper;
  readonly #loss = new AbortController();
  #fence: number;
  #meta: Json;
  #kept: Json | undefined;
  #validUntil: number;
  #released = false;

  constructor(start: LeaseStart, keeper: LeaseKeeper) {
    this.key = start.key;
    this.token = start.token;
    this.inherited = start.inherited;
    this.options = start.options;
    this.#keeper = keeper;
    this.#fence = start.fence;
    this.#meta = start.meta;
    this.#kept = start.inherited;
    this.#validUntil = start.validUntil;
  }

  get fence(): number {
    return this.#fence;
  }

  get meta(): Json {
    return this.#meta;
  }

  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  get valid(): boolean {
    return !this.ended && performance.now() < this.#validUntil;
  }

  /** Lost or released. */
  get ended(): boolean {
    return this.#released || this.#loss.signal.aborted;
  }

  get validUntil(): number {
    return this.#validUntil;
  }

  renewal(): Renewal {
    const { key, token, fence, meta, options } = this;
    return { key, token, fence, meta, keepMs: options.keepMs ?? 0, kept: this.#kept };
  }

  async update(meta: Json): Promise<void> {
    this.#check();
    this.#meta = copied(meta);
    await this.#confirm(await this.#keeper.update(this));
  }

  async keep(value: Json): Promise<void> {
    this.#check();
    this.#kept = copied(value);
    await this.#confirm(await this.#keeper.keep(this, this.#kept));
  }

  async release(): Promise<void> {
    if (this.ended) return;
    this.#released = true;
    await this.#keeper.release(this);
  }

  /** Its node leaves. */
  end(): void {
    this.#released = true;
  }

  extend(validUntil: number): void {
    this.#validUntil = Math.max(this.#validUntil, validUntil);
  }

  /** The store has it, perhaps by a new fence. */
  confirm({ owner }: Held): void {
    this.#fence = owner.fence;
  }

  lose(reason: string, owner?: Owner): void {
    if (!this.ended) this.#loss.abort(new LostError(reason, owner));
  }

  #check(): void {
    if (this.#released) throw new LostError(`the lease of ${this.key} was released`);
    this.signal.throwIfAborted();
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
