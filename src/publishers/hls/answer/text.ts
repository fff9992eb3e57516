import { gzip, gzipSync } from 'node:zlib';
import { promisify } from 'node:util';

const gzipOffLoop = promisify(gzip);
/** Bytes up to which compression on the event loop costs less than a worker thread. */
const SMALL = 16 * 1024;

/** A playlist as bytes, encoded and compressed once for all requests. */
export class Text {
  readonly plain: Buffer;
  #gzipped: Buffer | Promise<Buffer> | undefined;

  constructor(text: string) {
    this.plain = Buffer.from(text);
  }

  gzipped(): Buffer | Promise<Buffer> {
    this.#gzipped ??= this.plain.length <= SMALL ? gzipSync(this.plain) : gzipOffLoop(this.plain);
    return this.#gzipped;
  }
}
