import { delayed } from '../../core/delayed-stream.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Stream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';
import { within } from '../../lib/within.ts';

/** Newest image of every image track of an output stream. */
export class Thumbnails {
  readonly #source: Stream;
  readonly #reader: Reader;
  readonly #newest = new Map<number, Buffer>();
  /** Resolves with the next image; undefined while no viewer waits for it. */
  #next: PromiseWithResolvers<void> | undefined;
  #closed = false;
  readonly #forget = () => {
    for (const id of this.#newest.keys())
      if (!this.#source.tracks.some((track) => track.id === id)) this.#newest.delete(id);
  };

  /** @param delayMs delay after the output, in milliseconds */
  constructor(output: OutputStream, delayMs: number) {
    this.#source = delayed(output, delayMs);
    this.#reader = this.#source.read({
      packet: ({ track, data }) => {
        if (track.type !== 'image') return;
        this.#newest.set(track.id, data);
        this.#wake();
      },
    });
    this.#source.on('tracks', this.#forget);
  }

  /** Image file of the first track with that codec that has one; undefined when none has. */
  newest(codec: ImageCodec): Buffer | undefined {
    for (const track of this.#source.tracks) {
      const image = track.codec === codec ? this.#newest.get(track.id) : undefined;
      if (image !== undefined) return image;
    }
    return undefined;
  }

  /** Waits until there is an image with that codec, up to a time limit; not where no track has the codec. */
  async appears(codec: ImageCodec, limitMs: number): Promise<void> {
    const until = performance.now() + limitMs;
    for (let left = limitMs; left > 0 && !this.#closed; left = until - performance.now()) {
      if (this.newest(codec) !== undefined || !this.#source.tracks.some((track) => track.codec === codec)) return;
      this.#next ??= Promise.withResolvers();
      await within(left, this.#next.promise);
    }
  }

  #wake(): void {
    this.#next?.resolve();
    this.#next = undefined;
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#wake();
    this.#reader.close();
    this.#source.off('tracks', this.#forget);
    this.#newest.clear();
  }
}
