import { gzip, gzipSync } from 'node:zlib';
import { promisify } from 'node:util';
import { deflatePiece, joinToGzip, type DeflatedPiece } from '../../../lib/gzip-pieces.ts';

const gzipOffLoop = promisify(gzip);
/** Bytes up to which compression on the event loop costs less than a worker thread. */
const SMALL = 16 * 1024;

/** Part of a text, compressed at most once for all texts that it is part of. */
export class TextPiece {
  readonly plain: Buffer;
  #deflated: Promise<DeflatedPiece> | undefined;

  constructor(plain: Buffer) {
    this.plain = plain;
  }

  deflated(): Promise<DeflatedPiece> {
    return (this.#deflated ??= deflatePiece(this.plain));
  }
}

/** A playlist as bytes, encoded and compressed once for all requests. */
export class Text {
  readonly #pieces: readonly TextPiece[] | undefined;
  #plain: Buffer | undefined;
  #gzipped: Buffer | Promise<Buffer> | undefined;

  /** @param text whole, or in pieces of which some are part of other texts too */
  constructor(text: string | readonly TextPiece[]) {
    if (typeof text === 'string') this.#plain = Buffer.from(text);
    else this.#pieces = text;
  }

  get plain(): Buffer {
    return (this.#plain ??= Buffer.concat((this.#pieces ?? []).map(({ plain }) => plain)));
  }

  gzipped(): Buffer | Promise<Buffer> {
    return (this.#gzipped ??= this.#compress());
  }

  #compress(): Buffer | Promise<Buffer> {
    const pieces = this.#pieces;
    const length = pieces?.reduce((sum, { plain }) => sum + plain.length, 0) ?? this.plain.length;
    if (length <= SMALL) return gzipSync(this.plain);
    if (pieces === undefined) return gzipOffLoop(this.plain);
    return Promise.all(pieces.map((piece) => piece.deflated())).then(joinToGzip);
  }
}
