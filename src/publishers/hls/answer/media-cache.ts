import type { Media } from './played-stream.ts';

interface Entry {
  readonly stream: object;
  readonly name: string;
  readonly media: Media;
  readonly bytes: number;
  /** By the monotonic clock. */
  usedAt: number;
}

/** Media of streams of other nodes, bounded in bytes: the least recently used goes first. */
export class MediaCache {
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #entries = new Set<Entry>();
  readonly #streams = new Map<object, Map<string, Entry>>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(stream: object, name: string): Media | undefined {
    const entry = this.#streams.get(stream)?.get(name);
    if (entry === undefined) return undefined;
    entry.usedAt = performance.now();
    this.#entries.delete(entry);
    this.#entries.add(entry);
    return entry.media;
  }

  put(stream: object, name: string, media: Media): void {
    const bytes = media.body.reduce((sum, part) => sum + part.length, 0);
    if (bytes > this.#maxBytes) return;
    const known = this.#streams.get(stream)?.get(name);
    if (known !== undefined) this.#remove(known);
    const entry = { stream, name, media, bytes, usedAt: performance.now() };
    this.#entries.add(entry);
    let files = this.#streams.get(stream);
    if (files === undefined) this.#streams.set(stream, (files = new Map()));
    files.set(name, entry);
    this.#bytes += bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest);
    }
  }

  drop(stream: object): void {
    for (const entry of this.#streams.get(stream)?.values() ?? []) this.#remove(entry);
  }

  /** Drops entries that were not used since a time, by the monotonic clock. */
  expire(before: number): void {
    for (const entry of this.#entries) {
      if (entry.usedAt >= before) break;
      this.#remove(entry);
    }
  }

  #remove(entry: Entry): void {
    const { stream, name, bytes } = entry;
    this.#entries.delete(entry);
    this.#bytes -= bytes;
    const files = this.#streams.get(stream);
    files?.delete(name);
    if (files?.size === 0) this.#streams.delete(stream);
  }
}
