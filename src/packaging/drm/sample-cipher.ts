import { createCipheriv, randomBytes } from 'node:crypto';
import type { Pattern, SampleProtection, Subsample } from '../../containers/fmp4/protection.ts';
import { BLOCK_BYTES } from './subsample-list.ts';

const IV_BYTES = 8;

/** Encrypts the samples of one track in place (ISO/IEC 23001-7, 9 and 10). */
export interface SampleCipher {
  /** Takes the next sample: returns its description for the fragment, which `encrypt` then gets. */
  next(subsamples: readonly Subsample[] | undefined): SampleProtection;
  encrypt(sample: Buffer, protection: SampleProtection): void;
}

/** AES-CTR (10.1): each sample has an IV of its own, which never comes again with this key, but by a chance of one in 2^64. */
export class CtrCipher implements SampleCipher {
  readonly #key: Buffer;
  #iv: bigint;

  /** @param first IV of the first sample, 8 bytes; random, since other tracks and nodes use the key too */
  constructor(key: Buffer, first = randomBytes(IV_BYTES)) {
    this.#key = key;
    this.#iv = first.readBigUInt64BE();
  }

  next(subsamples: readonly Subsample[] | undefined): SampleProtection {
    const iv = Buffer.alloc(IV_BYTES);
    iv.writeBigUInt64BE(this.#iv);
    this.#iv = BigInt.asUintN(8 * IV_BYTES, this.#iv + 1n);
    return { iv, subsamples };
  }

  encrypt(sample: Buffer, { iv, subsamples }: SampleProtection): void {
    const cipher = createCipheriv('aes-128-ctr', this.#key, Buffer.concat([iv as Buffer, Buffer.alloc(IV_BYTES)]));
    // the key stream goes on from one subsample to the next
    for (const range of encryptedRanges(sample, subsamples)) cipher.update(range).copy(range);
  }
}

/** AES-CBC with one IV (10.4), from which each subsample begins anew. A last incomplete block stays in clear. */
export class CbcCipher implements SampleCipher {
  readonly #key: Buffer;
  readonly #iv: Buffer;
  readonly #pattern: Pattern | undefined;

  /** @param pattern undefined: all blocks are encrypted */
  constructor(key: Buffer, iv: Buffer, pattern: Pattern | undefined) {
    this.#key = key;
    this.#iv = iv;
    this.#pattern = pattern;
  }

  next(subsamples: readonly Subsample[] | undefined): SampleProtection {
    return { iv: undefined, subsamples };
  }

  encrypt(sample: Buffer, { subsamples }: SampleProtection): void {
    for (const range of encryptedRanges(sample, subsamples)) {
      const whole = range.subarray(0, range.length - (range.length % BLOCK_BYTES));
      if (whole.length === 0) continue;
      const cipher = createCipheriv('aes-128-cbc', this.#key, this.#iv).setAutoPadding(false);
      if (this.#pattern === undefined) cipher.update(whole).copy(whole);
      else encryptPattern(whole, this.#pattern, (blocks) => cipher.update(blocks));
    }
  }
}

/** Encrypts some blocks, then skips some, and so on. The chain goes from one encrypted block to the next. */
function encryptPattern(data: Buffer, { crypt, skip }: Pattern, update: (blocks: Buffer) => Buffer): void {
  const [taken, step] = [crypt * BLOCK_BYTES, (crypt + skip) * BLOCK_BYTES];
  const blocks = Buffer.allocUnsafe(Math.ceil(data.length / step) * taken);
  let size = 0;
  for (let at = 0; at < data.length; at += step) size += data.copy(blocks, size, at, at + taken);
  const encrypted = update(blocks.subarray(0, size));
  for (let at = 0, from = 0; from < size; at += step, from += taken) encrypted.copy(data, at, from, from + taken);
}

function* encryptedRanges(sample: Buffer, subsamples: readonly Subsample[] | undefined): IterableIterator<Buffer> {
  if (subsamples === undefined) return yield sample;
  let at = 0;
  for (const { clear, encrypted } of subsamples) {
    at += clear;
    if (encrypted > 0) yield sample.subarray(at, at + encrypted);
    at += encrypted;
  }
}
