import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';

/** The newest picture of every image track of an output stream. */
export class Pictures {
  readonly #output: OutputStream;
  readonly #reader: Reader;
  readonly #newest = new Map<number, Buffer>();
  readonly #forget = () => {
    for (const id of this.#newest.keys()) if (!this.#output.tracks.some((track) => track.id === id)) this.#newest.delete(id);
  };

  constructor(output: OutputStream) {
    this.#output = output;
    this.#reader = output.read({
      packet: ({ track, data }) => {
        if (track.type === 'image') this.#newest.set(track.id, data);
      },
    });
    output.on('tracks', this.#forget);
  }

  /** A whole file; of several tracks of that codec, the first that has put out one. Undefined when none has. */
  newest(codec: ImageCodec): Buffer | undefined {
    for (const track of this.#output.tracks) {
      const picture = track.codec === codec ? this.#newest.get(track.id) : undefined;
      if (picture !== undefined) return picture;
    }
    return undefined;
  }

  /** Idempotent. */
  close(): void {
    this.#reader.close();
    this.#output.off('tracks', this.#forget);
    this.#newest.clear();
  }
}
