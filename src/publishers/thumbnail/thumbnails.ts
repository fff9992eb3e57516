import { delayed } from '../../core/delayed-stream.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Stream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';

/** Newest image of every image track of an output stream. */
export class Thumbnails {
  readonly #source: Stream;
  readonly #reader: Reader;
  readonly #newest = new Map<number, Buffer>();
  readonly #forget = () => {
    for (const id of this.#newest.keys())
      if (!this.#source.tracks.some((track) => track.id === id)) this.#newest.delete(id);
  };

  /** @param delayMs delay after the output, in milliseconds */
  constructor(output: OutputStream, delayMs: number) {
    this.#source = delayed(output, delayMs);
    this.#reader = this.#source.read({
      packet: ({ track, data }) => {
        if (track.type === 'image') this.#newest.set(track.id, data);
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

  /** Idempotent. */
  close(): void {
    this.#reader.close();
    this.#source.off('tracks', this.#forget);
    this.#newest.clear();
  }
}
