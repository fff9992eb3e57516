import { LostError } from './errors.ts';
import type { ClaimOptions, Json, Lease, Owner } from './types.ts';

export interface LeaseStart {
  readonly key: string;
  /** Names the claim in the store. */
  readonly token: string;
  /** 0 while the store does not have it. */
  readonly fence: number;
  readonly inherited: Json | undefined;
  readonly meta: Json;
  /** On the monotonic clock, in milliseconds. */
  readonly validUntil: number;
  readonly options: ClaimOptions;
}

/** A lease that is valid for a limited time, which is extended as long as the store has it. */
export abstract class TimedLease implements Lease {
  readonly key: string;
  readonly token: string;
  readonly inherited: Json | undefined;
  readonly options: ClaimOptions;
  /** Mutable values; `kept` is inherited by the next holder. */
  protected readonly current: { fence: number; meta: Json; kept: Json | undefined };
  readonly #loss = new AbortController();
  #validUntil: number;
  #released = false;

  constructor({ key, token, fence, inherited, meta, validUntil, options }: LeaseStart) {
    this.key = key;
    this.token = token;
    this.inherited = inherited;
    this.options = options;
    this.current = { fence, meta, kept: inherited };
    this.#validUntil = validUntil;
  }

  get fence(): number {
    return this.current.fence;
  }

  get meta(): Json {
    return this.current.meta;
  }

  get kept(): Json | undefined {
    return this.current.kept;
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

  abstract update(meta: Json): Promise<void>;
  abstract keep(value: Json): Promise<void>;

  async release(): Promise<void> {
    if (this.ended) return;
    this.end();
    await this.withdraw();
  }

  /** Ends the lease without notifying the store. */
  end(): void {
    this.#released = true;
  }

  /** Extends the lease, which was renewed or which others have promised not to claim. */
  extend(validUntil: number): void {
    this.#validUntil = Math.max(this.#validUntil, validUntil);
  }

  lose(reason: string, owner?: Owner): void {
    if (!this.ended) this.#loss.abort(new LostError(reason, owner));
  }

  /** Notifies the store of the release. Never throws. */
  protected abstract withdraw(): Promise<void>;

  /** @throws LostError when it has ended */
  protected checkHeld(): void {
    if (this.#released) throw new LostError(`the lease of ${this.key} was released`);
    this.signal.throwIfAborted();
  }
}

/** Whether a claim with the option takes a key from its owner. */
export function takesFrom(take: ClaimOptions['take'], { fence }: Pick<Owner, 'fence'>): boolean {
  return typeof take === 'object' ? take.fence === fence : take === true;
}
