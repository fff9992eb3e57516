/** Bytes of a piece of a body. */
export const PIECE_BYTES = 256 * 1024;
/** Pieces of memory that are kept, of all clips: 8 MiB. */
const MAX_FREE = 32;

/**
 * Memory of pieces that are sent, which is used again: the pages of new memory cost more than what is read into them. A piece that is
 * not given back is left to the garbage collector.
 */
class PieceMemory {
  readonly #free: ArrayBuffer[] = [];
  readonly #taken = new WeakSet<ArrayBufferLike>();

  /** Memory of PIECE_BYTES. */
  take(): Buffer {
    const piece = Buffer.from(this.#free.pop() ?? new ArrayBuffer(PIECE_BYTES));
    this.#taken.add(piece.buffer);
    return piece;
  }

  /** Takes a piece back that no one reads any more. Memory that is not from here is ignored. */
  give({ buffer }: Buffer): void {
    if (this.#taken.delete(buffer) && this.#free.length < MAX_FREE) this.#free.push(buffer as ArrayBuffer);
  }
}

/** Memory of all clips. */
export const pieceMemory = new PieceMemory();
