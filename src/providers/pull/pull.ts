import { BackOff } from '../../lib/back-off.ts';
import type { Application } from '../../core/application.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { Logger } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';
import { shownReason, shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import { Passthrough } from '../intake/passthrough.ts';
import type { Opening } from './opening.ts';
import type { PullSpec } from './spec.ts';
import type { PullSource } from './source.ts';

export const LONGEST_PAUSE_MS = 5000;
/** Age of a connection after which the next attempt may come at once. */
const LASTING_MS = 5000;
const TRACKS_MS = 10_000;

export interface PullOptions {
  readonly application: Application;
  readonly input: InputStream;
  readonly spec: PullSpec;
  readonly persistent: boolean;
  /** Whether the pull fails for good if it never plays, even when persistent. */
  readonly isNew: boolean;
  readonly open: (url: string) => Opening;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** First URL by its index, with its connection if one is open or opening. */
  readonly begin: { readonly at: number; readonly opening?: Opening };
  /** Called when a URL begins to play. */
  readonly onPlays: (url: string) => void;
}

interface Outcome {
  readonly reason: string;
  /** Milliseconds that it played; undefined when it never did. */
  readonly played?: number;
  /** Connection to the first origin, if that is available again: the stream continues there. */
  readonly first?: Opening;
}

/** Pulls one stream, from the first of its URLs that works, and when that fails from the next. */
export class Pull {
  readonly #options: PullOptions;
  readonly #passthrough: Passthrough | undefined;
  #refusal: string | undefined;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  #at: number;
  /** Failed attempts since the stream played. */
  #failures = 0;
  /** Attempts since a connection lasted for `LASTING_MS`. */
  #attempts = 0;
  #started = false;
  #source: PullSource | undefined;

  constructor(options: PullOptions) {
    const { application, input, spec, begin } = options;
    this.#options = options;
    this.#at = begin.at;
    if (spec.relay)
      this.#passthrough = new Passthrough(application, input, (reason) => {
        this.#refusal = reason;
      });
  }

  get url(): string {
    return this.#options.spec.urls[this.#at] as string;
  }

  get connection() {
    return this.#source?.connection;
  }

  /**
   * Resolves when the signal aborts, or when no URL is left to try.
   * @throws PullError when a new one never played
   */
  async run(): Promise<void> {
    const {
      spec: { urls },
      signal,
      log,
      isNew,
      begin,
    } = this.#options;
    let ready = begin.opening;
    while (!signal.aborted) {
      const outcome = await this.#play(ready);
      const { first } = outcome;
      ready = first;
      if (signal.aborted) break;
      if (first !== undefined) {
        this.#at = 0;
        log.info({ url: shownUrl(this.url) }, 'back to the first origin of the stream');
        continue;
      }
      this.#count(outcome);
      const isFailing = isNew && !this.#started;
      // a failed creation reports the reason itself
      log[isFailing ? 'debug' : 'warn'](
        { url: shownUrl(this.url), reason: shownReason(outcome.reason) },
        'pulling the stream failed',
      );
      if (this.#isHopeless) {
        if (isFailing) throw new PullError(outcome.reason);
        return;
      }
      this.#at = (this.#at + 1) % urls.length;
      if (this.#attempts % urls.length === 0) await pause(this.#backOff.next(), signal);
    }
    ready?.close();
  }

  #count({ played }: Outcome): void {
    this.#failures = played === undefined ? this.#failures + 1 : 1;
    this.#attempts += 1;
    if (played === undefined || played < LASTING_MS) return;
    this.#attempts = 1;
    this.#backOff.reset();
  }

  /**
   * Whether all attempts are used up. After a stream has played, its end counts as a failure, and each other URL is
   * tried at least once.
   */
  get #isHopeless(): boolean {
    const {
      spec: { urls, retryCount },
      persistent,
      isNew,
    } = this.#options;
    if (persistent && (this.#started || !isNew)) return false;
    const tries = this.#started
      ? Math.max(urls.length - 1, urls.length * retryCount) + 1
      : urls.length * Math.max(1, retryCount);
    return this.#failures >= tries;
  }

  async #play(ready: Opening | undefined): Promise<Outcome> {
    const { signal, spec, onPlays } = this.#options;
    const { promise: ended, resolve: end } = Promise.withResolvers<Outcome>();
    const onAbort = (): void => end({ reason: 'the pull was ended' });
    signal.addEventListener('abort', onAbort, { once: true });
    const late = setTimeout(() => end({ reason: lateReason(this.#source) }), TRACKS_MS);
    let playedSince: number | undefined;
    let stopProbing: (() => void) | undefined;
    let unlink: (() => void) | undefined;
    const opening = ready ?? this.#options.open(this.url);
    try {
      const source = await Promise.race([opening.source, ended.then(() => undefined)]);
      this.#source = source;
      if (source?.link !== undefined) unlink = this.#options.input.counters.link('in', source.link);
      const sink = this.#sink(
        () => {
          clearTimeout(late);
          if (playedSince !== undefined) return;
          playedSince = performance.now();
          onPlays(this.url);
        },
        (reason) => end({ reason }),
      );
      // a source that never answers must not delay the end
      await Promise.race([source?.play(sink), ended]);
      if (spec.failbackMs > 0 && this.#at > 0)
        stopProbing = this.#awaitFirst(ended, (first) => end({ reason: '', first }));
      const outcome = await ended;
      return playedSince === undefined ? outcome : { ...outcome, played: performance.now() - playedSince };
    } catch (error) {
      return { reason: (error as Error).message };
    } finally {
      clearTimeout(late);
      stopProbing?.();
      unlink?.();
      signal.removeEventListener('abort', onAbort);
      this.#source = undefined;
      opening.close();
    }
  }

  #sink(onTracks: () => void, onEnd: (reason: string) => void): Parameters<PullSource['play']>[0] {
    const { input } = this.#options;
    return {
      tracks: (tracks, playlists) => {
        this.#passthrough?.setPlaylists(playlists);
        this.#refusal = undefined;
        input.setTracks(tracks);
        if (this.#refusal !== undefined) return onEnd(this.#refusal);
        this.#started = true;
        onTracks();
      },
      packet: (packet) => input.write(packet),
      received: (bytes) => input.counters.received(bytes),
      lost: (packets) => input.counters.lost(packets),
      trouble: (code, description) => input.emit('trouble', code, description),
      end: onEnd,
    };
  }

  /** Retries the first URL until it has the stream. Returns its undo. */
  #awaitFirst(over: Promise<Outcome>, found: (first: Opening) => void): () => void {
    const {
      spec: { urls, failbackMs },
    } = this.#options;
    const stop = new AbortController();
    const probe = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        await pause(failbackMs, stop.signal);
        if (stop.signal.aborted) return;
        const opening = this.#options.open(urls[0] as string);
        const source = await unlessAborted(opening.source, stop.signal).catch(() => undefined);
        if (source !== undefined) found(opening);
        // another outcome may have come first
        if (source === undefined || (await over).first !== opening) opening.close();
        if (source !== undefined) return;
      }
    };
    void probe();
    return () => stop.abort();
  }
}

function lateReason(source: PullSource | undefined): string {
  const late = 'the origin did not describe its tracks in time';
  return source?.trouble === undefined ? late : `${late} (${source.trouble})`;
}
