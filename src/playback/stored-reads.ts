import { kilnError } from '../errors.ts';
import { MAX_READS } from '../recording/delivery/buckets.ts';
import type { StoredFiles } from '../recording/delivery/stored-files.ts';
import { BucketError } from '../recording/delivery/upload.ts';
import type { StoredFile } from '../recording/finished/entry.ts';
import type { ApplicationNames } from '../recording/finished/recorded-index.ts';
import { Blocks, type BlockFile } from './blocks.ts';
import { SourceError, type ByteSource } from './byte-source.ts';

/** Small pieces, such as those of an index, are read in blocks, of which some are kept for a while. */
const BLOCK_BYTES = 512 * 1024;
const MAX_BLOCKS = 32;
const IDLE_MS = 10_000;
/** Bytes of one request. */
const MAX_RANGE = 1024 * 1024;

/** Reads recordings that are in a bucket alone, by ranges. */
export class StoredReads {
  readonly #stored: Pick<StoredFiles, 'read'>;
  readonly #blocks = new Blocks(BLOCK_BYTES, MAX_BLOCKS);
  #idle: NodeJS.Timeout | undefined;

  constructor(stored: Pick<StoredFiles, 'read'>) {
    this.#stored = stored;
  }

  /** @param id of the recording, which no two applications have */
  source(names: ApplicationNames, id: string, file: StoredFile): ByteSource {
    const { size } = file;
    let { etag } = file;
    // a file whose tag was not noted is the one that is read first
    const read = async (start: number, end: number, signal?: AbortSignal): Promise<Buffer> => {
      const found = await this.#stored.read(names, { ...file, etag }, start, end, signal).catch(unread(file));
      if (found.etag !== '') etag ??= found.etag;
      return Buffer.from(found.bytes);
    };
    const blockFile: BlockFile = { key: id, size, read };
    return {
      size,
      read: async (offset, length, signal) => {
        signal?.throwIfAborted();
        const end = offset + length;
        if (offset < 0 || length < 0 || end > size)
          throw new SourceError(`bytes ${offset} to ${end} of ${size} were asked for: ${file.key}`);
        if (length > BLOCK_BYTES) return await inRanges(read, offset, end, signal);
        this.#idle = this.#idle?.refresh() ?? setTimeout(() => this.#blocks.clear(), IDLE_MS).unref();
        return await this.#blocks.read(blockFile, offset, end, signal);
      },
    };
  }

  /** Forgets what was read. Idempotent. */
  close(): void {
    clearTimeout(this.#idle);
    this.#blocks.clear();
  }
}

async function inRanges(
  read: (start: number, end: number, signal?: AbortSignal) => Promise<Buffer>,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = start; at < end; at += MAX_RANGE) pieces.push(await read(at, Math.min(end, at + MAX_RANGE), signal));
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}

/** @throws SourceError; playbackBusy; what is no error of a bucket */
function unread({ bucket, key }: StoredFile): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof BucketError)) throw error;
    const { code, message } = error;
    if (code === 'Busy') throw kilnError('playbackBusy', MAX_READS);
    const place = `${key} in the bucket ${bucket}`;
    if (code === 'NoSuchKey' || code === '404') throw new SourceError(`it is gone: ${place}`, { cause: error });
    if (code === 'PreconditionFailed' || code === '412')
      throw new SourceError(`it was replaced by another object: ${place}`, { cause: error });
    throw new SourceError(`${message}: ${place}`, { cause: error });
  };
}
