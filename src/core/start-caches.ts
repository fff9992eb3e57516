import type { Application } from './application.ts';
import { CachedPackets } from './cached-packets.ts';
import { GopCache } from './gop-cache.ts';
import type { Registry } from './registry.ts';
import type { OutputStream } from './output-stream.ts';

/** Readers of a stream with longer GOPs start at the next key frame. */
const LIMITS = { bytes: 8 * 1024 * 1024, seconds: 10 };
/** Limit of all streams of the node, checked once a second. */
const MAX_BYTES = 256 * 1024 * 1024;
const CHECK_MS = 1000;
/** Time for which a cache stays after its last user. */
const KEPT_MS = 10_000;

/**
 * Caches of output streams from their last key frame on, with which a relay on another node, or a push, starts. There is one for each
 * stream that has such users or had them a short time ago, that continues one which had, or that `isUsed` names. The first user of
 * any other stream starts with the next key frame.
 */
export class StartCaches {
  readonly #caches = new Map<OutputStream, StartCache>();
  readonly #registry: Registry;
  readonly #use: string;
  readonly #isUsed: (output: OutputStream, application: Application) => boolean;
  readonly #pastSeconds: number;
  /** Begins the cache of a new stream to which users are about to come, such as those of the stream before. */
  readonly #attach = (output: OutputStream, application: Application): void => {
    if (this.#isUsed(output, application)) this.hold(output);
    else if (output.input.continuity.inherited(this.#keyOf(output)) === true) this.hold(output)();
  };
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param use purpose of the caches, such as `relayed`: streams keep it for those that continue them
   * @param isUsed whether a new stream has a cache as long as it exists, with users or without
   * @param pastSeconds least media that is kept, within the limits, for users that had the stream before
   */
  constructor(
    registry: Registry,
    use: string,
    isUsed: (output: OutputStream, application: Application) => boolean = () => false,
    pastSeconds = 0,
  ) {
    this.#registry = registry;
    this.#use = use;
    this.#isUsed = isUsed;
    this.#pastSeconds = pastSeconds;
    registry.on('output', this.#attach);
  }

  /** The cache of a stream; undefined where there is none. */
  of(output: OutputStream): GopCache | undefined {
    return this.#caches.get(output)?.packets;
  }

  /** A user of a stream has come; call the answer, once, when it has gone. */
  hold(output: OutputStream): () => void {
    const cache = this.#caches.get(output) ?? this.#begin(output);
    cache.hold();
    return () => cache.release();
  }

  /** Idempotent. */
  close(): void {
    this.#registry.off('output', this.#attach);
    for (const cache of [...this.#caches.values()]) cache.close();
  }

  #begin(output: OutputStream): StartCache {
    const cache = new StartCache(output, this.#keyOf(output), this.#pastSeconds, () => {
      this.#caches.delete(output);
      if (this.#caches.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    this.#caches.set(output, cache);
    this.#timer ??= setInterval(() => this.#shed(), CHECK_MS).unref();
    return cache;
  }

  get #bytes(): number {
    let bytes = 0;
    for (const { packets } of this.#caches.values()) bytes += packets.bytes;
    return bytes;
  }

  /** Under which a stream keeps for the one that continues it that an output of it is used so. */
  #keyOf({ name }: OutputStream): string {
    return `${this.#use}/${name}`;
  }

  /** Frees memory: first media before the last key frames, then caches without users, then the oldest caches. */
  #shed(): void {
    if (this.#bytes <= MAX_BYTES) return;
    for (const { packets } of this.#caches.values()) packets.shorten();
    let bytes = this.#bytes;
    if (bytes <= MAX_BYTES) return;
    for (const cache of [...this.#caches.values()].sort((one, other) => Number(one.held) - Number(other.held))) {
      bytes -= cache.packets.bytes;
      cache.close();
      if (bytes <= MAX_BYTES) return;
    }
  }
}

/** Cache of one output stream. */
class StartCache {
  readonly #output: OutputStream;
  readonly #key: string;
  readonly #onClose: () => void;
  readonly #pastSeconds: number;
  readonly #cached: CachedPackets;
  #users = 0;
  #late: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #onEnd = (): void => this.close();

  constructor(output: OutputStream, key: string, pastSeconds: number, onClose: () => void) {
    this.#output = output;
    this.#key = key;
    this.#pastSeconds = pastSeconds;
    this.#onClose = onClose;
    this.#cached = new CachedPackets(output, () => this.#begin());
    output.once('close', this.#onEnd);
    output.input.continuity.keep(key, true);
  }

  get packets(): GopCache {
    return this.#cached.packets;
  }

  get held(): boolean {
    return this.#users > 0;
  }

  hold(): void {
    this.#users++;
    clearTimeout(this.#late);
  }

  release(): void {
    this.#users--;
    if (!this.held && !this.#closed) this.#late = setTimeout(() => this.#expire(), KEPT_MS).unref();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#late);
    this.#cached.close();
    this.#output.off('close', this.#onEnd);
    this.#onClose();
  }

  #begin(): GopCache {
    if (this.#pastSeconds === 0) return new GopCache(LIMITS);
    return new GopCache(LIMITS, (_track, now) => now - this.#pastSeconds);
  }

  #expire(): void {
    this.#output.input.continuity.keep(this.#key, false);
    this.close();
  }
}
