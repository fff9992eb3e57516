import { Blocks, type BlockFile } from '../blocks.ts';
import type { ByteSource } from '../byte-source.ts';

/** Blocks of the tables of one recording: some minutes of video each. */
const BLOCK_BYTES = 32 * 1024;
const MAX_BLOCKS = 8;

/**
 * A recording whose tables are read: each clip asks for small pieces of them many times, and so does the next segment. What is larger
 * than a block is read as it is.
 */
export class TableSource implements ByteSource {
  readonly size: number;
  readonly #source: ByteSource;
  readonly #file: BlockFile;
  readonly #blocks = new Blocks(BLOCK_BYTES, MAX_BLOCKS);

  constructor(source: ByteSource) {
    this.size = source.size;
    this.#source = source;
    this.#file = { key: '', size: source.size, read: (start, end) => source.read(start, end - start) };
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Buffer> {
    const isFar = offset < 0 || length < 0 || offset + length > this.size;
    if (isFar || length > BLOCK_BYTES) return await this.#source.read(offset, length, signal);
    signal?.throwIfAborted();
    return await this.#blocks.read(this.#file, offset, offset + length, signal);
  }
}
