import { TimedLease, type LeaseStart } from '../../timed-lease.ts';
import type { Json } from '../../types.ts';

/** Values to change; undefined ones stay as they are. */
export interface LeaseValues {
  readonly meta?: Json | undefined;
  readonly kept?: Json | undefined;
}

/** Services that a lease needs from its keeper. */
export interface LeaseKeeper {
  /** Writes values of the lease to the store. */
  readonly write: (lease: RedisLease, values: LeaseValues) => Promise<void>;
  readonly release: (lease: RedisLease) => Promise<void>;
}

/** A lease in Redis. It lasts while its node's beats are answered and no other node has claimed the key. */
export class RedisLease extends TimedLease {
  readonly #keeper: LeaseKeeper;
  #isMissing = false;
  /** The store may lack the meta, or the kept value. */
  #isMetaPending = false;
  #isKeptPending = false;
  /** Changed since the claim was made: an older state of the store has others. */
  #hasOtherMeta = false;
  #hasOtherKept = false;
  #waits: boolean;

  /** @param waits the holder that the key was taken from may still act on it: the lease is not valid before begin() */
  constructor(start: LeaseStart & { readonly waits: boolean }, keeper: LeaseKeeper) {
    super(start);
    this.#keeper = keeper;
    this.#waits = start.waits;
  }

  override get valid(): boolean {
    return !this.#waits && super.valid;
  }

  /** The holder that the key was taken from may still act on it. */
  get waits(): boolean {
    return this.#waits;
  }

  /** Redis may lack the claim, or have it by a later fence than is known here. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  override async update(meta: Json): Promise<void> {
    this.checkHeld();
    this.current.meta = meta;
    this.#isMetaPending = this.#hasOtherMeta = true;
    await this.#keeper.write(this, { meta });
  }

  override async keep(value: Json): Promise<void> {
    this.checkHeld();
    this.current.kept = value;
    this.#isKeptPending = this.#hasOtherKept = true;
    await this.#keeper.write(this, { kept: value });
  }

  /** Has changed values written again: the store may be in an older state. */
  repeatWrites(): void {
    this.#isMetaPending ||= this.#hasOtherMeta;
    this.#isKeptPending ||= this.#hasOtherKept;
  }

  /** Values that the store may lack; undefined when it has all. */
  get pending(): LeaseValues | undefined {
    if (!this.#isMetaPending && !this.#isKeptPending) return undefined;
    return {
      meta: this.#isMetaPending ? this.meta : undefined,
      kept: this.#isKeptPending ? this.kept : undefined,
    };
  }

  /** The store has these values. */
  written({ meta, kept }: LeaseValues): void {
    if (meta !== undefined && this.meta === meta) this.#isMetaPending = false;
    if (kept !== undefined && this.kept === kept) this.#isKeptPending = false;
  }

  /** The holder before has stopped. */
  begin(): void {
    this.#waits = false;
  }

  /** The claim is to be restored. */
  markMissing(): void {
    this.#isMissing = true;
  }

  /** @param fence of a claim that was restored */
  override extend(validUntil: number, fence?: number): void {
    this.expire();
    if (this.ended) return;
    super.extend(validUntil);
    if (fence === undefined) return;
    this.current.fence = fence;
    this.#isMissing = false;
  }

  /** Loses a lease that must not outlast its validity, when that is over. */
  expire(): void {
    if (this.options.silence === 'stop' && performance.now() >= this.validUntil) {
      this.lose(`the lease of ${this.key} could not be renewed in time`);
    }
  }

  protected override async withdraw(): Promise<void> {
    await this.#keeper.release(this);
  }
}
