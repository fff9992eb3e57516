import { GopCache } from '../../core/gop-cache.ts';
import type { Registry } from '../../core/registry.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';

/** Longer groups of pictures are begun with their next key frame. */
const LIMITS = { bytes: 8 * 1024 * 1024, seconds: 10 };

/** Of every output stream of this node what a relay on another node starts from: everything from the last key frame on. */
export class StartCaches {
  readonly #registry: Registry;
  readonly #caches = new Map<OutputStream, GopCache>();
  readonly #attach = (output: OutputStream): void => this.#add(output);

  constructor(registry: Registry) {
    this.#registry = registry;
    registry.on('output', this.#attach);
  }

  of(output: OutputStream): GopCache | undefined {
    return this.#caches.get(output);
  }

  /** Idempotent. */
  close(): void {
    this.#registry.off('output', this.#attach);
    this.#caches.clear();
  }

  #add(output: OutputStream): void {
    if (output.closed || output.input.isRelay) return;
    let reader: Reader | undefined;
    // what was there of other tracks cannot be told of any more
    const begin = (): void => {
      reader?.close();
      const cache = new GopCache(LIMITS);
      this.#caches.set(output, cache);
      reader = output.read(cache);
    };
    begin();
    output.on('tracks', begin);
    output.once('close', () => this.#caches.delete(output));
  }
}
