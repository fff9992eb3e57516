import type { DrmKey, DrmNames } from '../../../config/drm-info.ts';
import { BackOff } from '../../../lib/back-off.ts';
import { pause } from '../../../lib/pause.ts';
import type { Logger } from '../../../log/log.ts';
import type { SavedKey } from './key-rotation.ts';
import { KeyServerError, type KeyServer } from './key-server.ts';
import type { FurtherKey, KeySource } from './key-source.ts';

export interface ServerKeysOptions {
  readonly server: KeyServer;
  readonly names: DrmNames;
  /** Seconds between two rotations; 0: on request only. */
  readonly period: number;
  readonly log: Logger;
}

/** Longest pause between two requests for a key that the server did not give. */
const LONGEST_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 500;

/**
 * Keys of a key server, one for each period. The first period is that of the clock; each further key has the next number, which
 * `SavedKey.period` hands to the node that goes on. The key of the next period is fetched ahead.
 */
export class ServerKeys implements KeySource {
  readonly #options: ServerKeysOptions;
  readonly #stop = new AbortController();
  #period: number;
  #first: DrmKey | undefined;
  #ahead: DrmKey | undefined;
  /** Why the server did not give the next key the last time. */
  #problem = 'its key server has not answered yet';

  private constructor(options: ServerKeysOptions, period: number) {
    this.#options = options;
    this.#period = period;
  }

  /**
   * Fetches the first key of a stream, however long that takes. With ClearLead, a stream that continues no other goes ahead
   * without one after the first request that failed.
   * @param saved key of the stream that this one continues
   * @param now milliseconds since the epoch
   * @param signal ends the wait
   * @returns undefined when the signal has aborted
   */
  static async open(
    options: ServerKeysOptions,
    saved: SavedKey | undefined,
    now: number,
    signal: AbortSignal,
  ): Promise<ServerKeys | undefined> {
    const { server, period, log } = options;
    const keys = new ServerKeys(options, saved?.period ?? (period > 0 ? Math.floor(now / (period * 1000)) : 0));
    const goesAhead = server.config.clearLead && saved === undefined;
    const opened = Promise.withResolvers<void>();
    const stopped = (): void => keys.close();
    signal.addEventListener('abort', stopped);
    if (signal.aborted) stopped();
    const onFailed = (reason: string): void => {
      if (goesAhead) {
        log.warn({ reason }, 'the stream is published in clear: its key server gave no key, and ClearLead is on');
        opened.resolve();
      } else log.error({ reason }, 'the stream is not published yet: its key server gave no key, and is asked again');
    };
    void keys.#fetch(keys.#period, onFailed).then((key) => {
      keys.#first = key;
      opened.resolve();
      if (key !== undefined) keys.#fetchAhead();
    }, opened.reject);
    try {
      await opened.promise;
    } finally {
      signal.removeEventListener('abort', stopped);
    }
    return signal.aborted ? undefined : keys;
  }

  get first(): DrmKey | undefined {
    return this.#first;
  }

  get period(): number {
    return this.#period;
  }

  firstRotation(now: number, periodMs: number): number {
    return (Math.floor(now / periodMs) + 1) * periodMs;
  }

  next(): FurtherKey {
    const key = this.#ahead;
    if (key === undefined) return { key, problem: this.#problem };
    this.#period++;
    this.#ahead = undefined;
    this.#fetchAhead();
    return { key };
  }

  close(): void {
    this.#stop.abort();
  }

  #fetchAhead(): void {
    this.#problem = 'its key server has not answered yet';
    const onFailed = (reason: string): void =>
      this.#options.log.warn({ reason }, 'the key server gave no key for the next period, and is asked again');
    void this.#fetch(this.#period + 1, onFailed).then(
      (key) => (this.#ahead = key),
      (error: unknown) => {
        this.#problem = 'its next key could not be fetched';
        this.#options.log.error({ err: error }, 'the next key of the stream could not be fetched');
      },
    );
  }

  /**
   * Asks until there is a key.
   * @param onFailed called for the first failure
   * @returns undefined when it was closed
   */
  async #fetch(period: number, onFailed: (reason: string) => void): Promise<DrmKey | undefined> {
    const { server, names, log } = this.#options;
    const { signal } = this.#stop;
    const backOff = new BackOff(LONGEST_PAUSE_MS, FIRST_PAUSE_MS);
    for (let failures = 0; ; failures++) {
      try {
        const key = await server.ask(names, period, signal);
        if (signal.aborted) return undefined;
        if (failures > 0) log.info({ failures }, 'the key server answers again');
        return key;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof KeyServerError)) throw error;
        this.#problem = error.message;
        if (failures === 0) onFailed(error.message);
      }
      await pause(backOff.next(), signal);
      if (signal.aborted) return undefined;
    }
  }
}
