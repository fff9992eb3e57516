import { delayed } from '../../core/delayed-stream.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream, Stream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';

/** The newest picture of every image track of an output stream. */
export class Pictures {
  readonly #source: Stream;
  readonly #reader: Reader;
  readonly #newest = new Map<number, Buffer>();
  readonly #forget = () => {
    for (const id of this.#newest.keys())
      if (!this.#source.tracks.some((track) => track.id === id)) this.#newest.delete(id);
  };

  /** @param delayMs by which pictures are shown later than they come */
  constructor(output: OutputStream, delayMs: number) {
    this.#source = delayed(output, delayMs);
    this.#reader = this.#source.read({
      packet: ({ track, data }) => {
        if (track.type === 'image') this.#newest.set(track.id, data);
      },
    });
    this.#source.on('tracks', this.#forget);
  }

  /** A whole file; of several tracks of that codec, the first that has put out one. Undefined when none has. */
  newest(codec: ImageCodec): Buffer | undefined {
    for (const track of this.#source.tracks) {
      const picture = track.codec === codec ? this.#newest.get(track.id) : undefined;
      if (picture !== undefined) return picture;
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
