import Type, { type Static } from 'typebox';
import { kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import { KeySchedule } from '../../../packaging/drm/key-schedule.ts';
import type { KeyCounts } from '../answer/counts.ts';
import type { KeySource } from './key-source.ts';

/** Key of a stream that continues it: never the key itself. */
export const SavedKey = Type.Object({
  /** KeyId, in hexadecimal digits. */
  id: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  /** Time of the next rotation, in milliseconds since the epoch; absent where keys rotate on request only. */
  rotatesAt: Type.Optional(Type.Number({ minimum: 0, maximum: 1e16 })),
  /** Number of the period, by which a key server gives the key again. */
  period: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e14 })),
});
export type SavedKey = Static<typeof SavedKey>;

export interface KeyRotationOptions {
  readonly source: KeySource;
  /** Seconds between two rotations; 0: on request only. */
  readonly period: number;
  readonly counts: KeyCounts;
  readonly log: Logger;
}

/** Pause after which a rotation that failed is tried again, unless the period is shorter. */
const RETRY_MS = 30_000;

/** Rotates the keys of one stream: the next key of its source encrypts all segments from the next one on. */
export class KeyRotation {
  readonly schedule: KeySchedule;
  readonly #options: KeyRotationOptions;
  readonly #periodMs: number;
  #rotatesAt: number | undefined;
  /** Whether the last rotation by the period failed, which the log has. */
  #fails = false;

  /**
   * @param saved of the stream that this one continues
   * @param now milliseconds since the epoch
   */
  constructor(options: KeyRotationOptions, saved: SavedKey | undefined, now: number) {
    const { source, period } = options;
    this.#options = options;
    this.#periodMs = period * 1000;
    this.schedule = new KeySchedule(source.first);
    if (period > 0)
      this.#rotateAt(
        saved?.rotatesAt === undefined
          ? source.firstRotation(now, this.#periodMs)
          : Math.min(saved.rotatesAt, now + this.#periodMs),
      );
  }

  /** State for the stream that continues this one; undefined while it is in clear. */
  get state(): SavedKey | undefined {
    const id = this.schedule.newest?.keyId.toString('hex');
    if (id === undefined) return undefined;
    const { period } = this.#options.source;
    return {
      id,
      ...(this.#rotatesAt !== undefined && { rotatesAt: this.#rotatesAt }),
      ...(period !== undefined && { period }),
    };
  }

  /**
   * Rotates where it is time.
   * @param now milliseconds since the epoch
   * @param next media sequence number of the next segment
   * @returns whether the next segment has another key
   */
  tick(now: number, next: number): boolean {
    if (this.#beginsLate(next)) return true;
    if (this.#rotatesAt === undefined || now < this.#rotatesAt) return false;
    const reason = this.#change(next);
    if (reason === undefined) {
      this.#fails = false;
      // periods without a publisher are over
      const periods = Math.floor((now - this.#rotatesAt) / this.#periodMs) + 1;
      this.#rotateAt(this.#rotatesAt + periods * this.#periodMs);
      return true;
    }
    if (!this.#fails) this.#options.log.error({ reason }, 'the key of the stream was not rotated: it is used on');
    this.#fails = true;
    this.#rotateAt(now + Math.min(RETRY_MS, this.#periodMs));
    return false;
  }

  /** Rotates on request; the period goes on. @param next as of `tick` @throws keyNotRotated */
  rotate(next: number): void {
    const reason = this.#change(next);
    if (reason !== undefined) throw kilnError('keyNotRotated', reason);
  }

  /** Idempotent. */
  close(): void {
    this.#options.source.close();
    this.#options.counts.next.delete(this);
  }

  /** Takes the first key of a stream that began in clear. */
  #beginsLate(next: number): boolean {
    const { first } = this.#options.source;
    if (this.schedule.newest !== undefined || first === undefined) return false;
    this.schedule.change(first, next);
    this.#options.log.info('the stream is encrypted from the next segment on');
    return true;
  }

  /** @returns why there is no other key; undefined when the next segment has one */
  #change(next: number): string | undefined {
    const { schedule } = this;
    if (schedule.changesAt(next)) return undefined;
    const { counts, source } = this.#options;
    const { newest } = schedule;
    if (newest === undefined) return 'the stream has no key yet';
    const { key, problem } = source.next(newest);
    if (problem !== undefined) counts.failures++;
    if (key === undefined) return problem;
    schedule.change(key, next);
    counts.rotations++;
    return undefined;
  }

  #rotateAt(time: number): void {
    this.#rotatesAt = time;
    this.#options.counts.next.set(this, time);
  }
}
