import { gzip, gzipSync } from 'node:zlib';
import { promisify } from 'node:util';

const gzipOffLoop = promisify(gzip);
/** Compressing this much takes the loop less time than handing it to a thread and back. */
const SMALL = 16 * 1024;

/** A playlist as bytes: encoded and compressed once, however many ask. */
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
