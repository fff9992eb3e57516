import Type, { type Static } from 'typebox';
import { ConfigError } from '../../../config/config-error.ts';
import { systemsOf, type DrmKey, type DrmKeys } from '../../../config/drm-info.ts';
import { kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import { KeySchedule } from '../../../packaging/drm/key-schedule.ts';
import type { KeyCounts } from '../answer/counts.ts';

/** Key of a stream that continues it: never the key itself. */
export const SavedKey = Type.Object({
  /** KeyId, in hexadecimal digits. */
  id: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  /** Time of the next rotation, in milliseconds since the epoch; absent where keys rotate on request only. */
  rotatesAt: Type.Optional(Type.Number({ minimum: 0, maximum: 1e16 })),
});
export type SavedKey = Static<typeof SavedKey>;

export interface KeyRotationOptions {
  readonly keys: DrmKeys;
  /** Reads the present keys of the stream. @throws ConfigError */
  readonly read: () => DrmKeys | undefined;
  /** Seconds between two rotations; 0: on request only. */
  readonly period: number;
  readonly counts: KeyCounts;
  readonly log: Logger;
}

/** Pause after which a rotation that failed is tried again, unless the period is shorter. */
const RETRY_MS = 30_000;

/**
 * Rotates the keys of one stream: the next key of its entry encrypts all segments from the next one on, and after the last key the
 * first one comes again. The DRM file is read again for each rotation, so that keys can be added while the stream runs.
 */
export class KeyRotation {
  readonly schedule: KeySchedule;
  readonly #options: KeyRotationOptions;
  readonly #periodMs: number;
  #keys: DrmKeys;
  #rotatesAt: number | undefined;
  /** Whether the last rotation failed, which the log has. */
  #fails = false;

  /**
   * @param saved of the stream that this one continues
   * @param now milliseconds since the epoch
   */
  constructor(options: KeyRotationOptions, saved: SavedKey | undefined, now: number) {
    const { keys, period } = options;
    this.#options = options;
    this.#keys = keys;
    this.#periodMs = period * 1000;
    this.schedule = new KeySchedule(keys.find(({ keyId }) => keyId.toString('hex') === saved?.id) ?? keys[0]);
    if (period > 0) this.#rotateAt(Math.min(saved?.rotatesAt ?? Infinity, now + this.#periodMs));
  }

  /** State for the stream that continues this one. */
  get state(): SavedKey {
    const id = this.schedule.newest.keyId.toString('hex');
    return this.#rotatesAt === undefined ? { id } : { id, rotatesAt: this.#rotatesAt };
  }

  /**
   * Rotates where it is time.
   * @param now milliseconds since the epoch
   * @param next media sequence number of the next segment
   */
  tick(now: number, next: number): void {
    if (this.#rotatesAt === undefined || now < this.#rotatesAt) return;
    const reason = this.#change(next);
    if (reason === undefined) {
      // periods without a publisher are over
      const periods = Math.floor((now - this.#rotatesAt) / this.#periodMs) + 1;
      return this.#rotateAt(this.#rotatesAt + periods * this.#periodMs);
    }
    if (!this.#fails) this.#options.log.error({ reason }, 'the key of the stream was not rotated: it is used on');
    this.#fails = true;
    this.#rotateAt(now + Math.min(RETRY_MS, this.#periodMs));
  }

  /** Rotates on request; the period goes on. @param next as of `tick` @throws keyNotRotated */
  rotate(next: number): void {
    const reason = this.#change(next);
    if (reason !== undefined) throw kilnError('keyNotRotated', reason);
  }

  /** Idempotent. */
  close(): void {
    this.#options.counts.next.delete(this);
  }

  /** @returns why there is no other key; undefined when the next segment has one */
  #change(next: number): string | undefined {
    const { schedule } = this;
    if (schedule.changesAt(next)) return undefined;
    const { counts } = this.#options;
    const problem = this.#readKeys();
    const index = this.#keys.findIndex(({ keyId }) => keyId.equals(schedule.newest.keyId));
    const key = this.#keys[(index + 1) % this.#keys.length] as DrmKey;
    if (index >= 0 && this.#keys.length === 1) {
      counts.failures++;
      return problem ?? 'its entry of the DRM file has no other key';
    }
    if (problem === undefined) this.#fails = false;
    else counts.failures++;
    schedule.change(key, next);
    counts.rotations++;
    return undefined;
  }

  /** Takes the keys that the file has now. @returns why those known so far are used on */
  #readKeys(): string | undefined {
    const { read, log } = this.#options;
    const problem = this.#tryToRead(read);
    if (problem !== undefined && !this.#fails) {
      log.error({ reason: problem }, 'the DRM file cannot be used any more: keys rotate among those known so far');
      this.#fails = true;
    }
    return problem;
  }

  #tryToRead(read: () => DrmKeys | undefined): string | undefined {
    try {
      const keys = read();
      if (keys === undefined) return 'no entry of the DRM file matches the stream any more';
      const [{ scheme }] = this.#keys;
      // players choose a key system once
      if (keys[0].scheme !== scheme || systemsOf(keys[0]) !== systemsOf(this.#keys[0]))
        return 'its entry of the DRM file has another scheme, or other key systems, than when the stream started';
      this.#keys = keys;
      return undefined;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.message;
    }
  }

  #rotateAt(time: number): void {
    this.#rotatesAt = time;
    this.#options.counts.next.set(this, time);
  }
}
