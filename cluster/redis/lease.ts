import { LostError } from '../errors.ts';
import type { ClaimOptions, Json, Lease, Owner } from '../types.ts';

/** What a lease needs of who keeps it. */
export interface LeaseKeeper {
  /** Brings the lease's meta to the store. */
  readonly update: (lease: RedisLease) => Promise<void>;
  /** Brings what it keeps there. */
  readonly keep: (lease: RedisLease) => Promise<void>;
  readonly release: (lease: RedisLease) => Promise<void>;
}

export interface LeaseStart {
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly inherited: Json | undefined;
  readonly meta: Json;
  /** On the monotonic clock, in milliseconds. */
  readonly validUntil: number;
  readonly options: ClaimOptions;
  /** Another may still act on it: not valid before begin(). */
  readonly waits: boolean;
}

/** A lease in Redis, as long as it is renewed there. */
export class RedisLease implements Lease {
  readonly key: string;
  readonly token: string;
  readonly inherited: Json | undefined;
  readonly options: ClaimOptions;
  readonly #keeper: LeaseKeeper;
  readonly #loss = new AbortController();
  #fence: number;
  #isRemade = false;
  #meta: Json;
  #kept: Json | undefined;
  /** The store may not have the meta, or what is kept. */
  #untold = false;
  #unkept = false;
  #validUntil: number;
  #waits: boolean;
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
    this.#waits = start.waits;
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
    return !this.ended && !this.#waits && performance.now() < this.#validUntil;
  }

  /** Lost or released. */
  get ended(): boolean {
    return this.#released || this.#loss.signal.aborted;
  }

  /** Another may still act on it. */
  get waits(): boolean {
    return this.#waits;
  }

  /** What the next holder is to inherit. */
  get kept(): Json | undefined {
    return this.#kept;
  }

  get validUntil(): number {
    return this.#validUntil;
  }

  /** Redis may have it by a later fence than is known here. */
  get isRemade(): boolean {
    return this.#isRemade;
  }

  async update(meta: Json): Promise<void> {
    if (this.ended) throw this.#ending();
    this.#meta = meta;
    this.#untold = true;
    await this.#keeper.update(this);
    if (this.#meta === meta) this.#untold = false;
  }

  async keep(value: Json): Promise<void> {
    if (this.ended) throw this.#ending();
    this.#kept = value;
    this.#unkept = true;
    await this.#keeper.keep(this);
    if (this.#kept === value) this.#unkept = false;
  }

  /** Brings to the store what it may not have yet. @throws what update() does */
  async tellAgain(): Promise<void> {
    if (this.#untold) await this.update(this.#meta);
    if (this.#unkept && this.#kept !== undefined) await this.keep(this.#kept);
  }

  async release(): Promise<void> {
    if (this.ended) return;
    this.#released = true;
    await this.#keeper.release(this);
  }

  /** The holder before has stopped. */
  begin(): void {
    this.#waits = false;
  }

  /** Redis is asked to make it anew. */
  remake(): void {
    this.#isRemade = true;
  }

  /** It was renewed, or others have promised to leave it alone. @param fence when it was made anew */
  extend(validUntil: number, fence?: number): void {
    this.expire();
    if (this.ended) return;
    this.#validUntil = Math.max(this.#validUntil, validUntil);
    if (fence === undefined) return;
    this.#fence = fence;
    this.#isRemade = false;
  }

  /** Loses a lease that must not outlast its validity, when that is over. */
  expire(): void {
    if (this.options.silence === 'stop' && performance.now() >= this.#validUntil) {
      this.lose(`the lease of ${this.key} could not be renewed in time`);
    }
  }

  lose(reason: string, owner?: Owner): void {
    if (!this.ended) this.#loss.abort(new LostError(reason, owner));
  }

  #ending(): unknown {
    return this.#released ? new LostError(`the lease of ${this.key} was released`) : this.#loss.signal.reason;
  }
}
