import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import Type, { type Static } from 'typebox';
import { withSuffix } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';

/** A multipart upload in progress. */
export const Progress = Type.Object({
  /** Storage and bucket. */
  place: Type.String(),
  key: Type.String(),
  uploadId: Type.String(),
  size: Type.Integer(),
  partSize: Type.Integer(),
  /** ETags of the stored parts, from the first on. */
  etags: Type.Array(Type.String()),
  /** Whether the storage confirmed the checksum of each part. */
  verified: Type.Boolean(),
});
export type Progress = Static<typeof Progress>;

/** Bytes `start` to `end` of a file; `end` is exclusive. */
export interface FileRange {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export interface Stored {
  /** As the storage returns it, with its quotes. */
  readonly etag: string;
  /** Encrypted with a customer's key: the ETag is no checksum of the content. */
  readonly encrypted: boolean;
}

export interface NewObject {
  readonly key: string;
  /** Stored with the object, for `head`. */
  readonly id: string;
  readonly contentType: string;
}

/** Error response of a storage, or failure to reach it. */
export class BucketError extends Error {
  override readonly name = 'BucketError';
  /** Code of S3, such as NoSuchUpload, or of the system, such as ECONNREFUSED. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** S3 bucket. All methods throw BucketError. No object is replaced, as far as the storage supports that. */
export interface Bucket {
  /** Storage and bucket. */
  readonly place: string;
  /** @param md5 in Base64, checked by the storage */
  put(object: NewObject, range: FileRange, md5: string): Promise<Stored>;
  /** Begins a multipart upload. @returns its id */
  create(object: NewObject): Promise<string>;
  /** @param number from 1 on */
  putPart(key: string, uploadId: string, number: number, range: FileRange, md5: string): Promise<Stored>;
  /** @returns the ETag of the object */
  complete(key: string, uploadId: string, etags: readonly string[]): Promise<string>;
  abort(key: string, uploadId: string): Promise<void>;
  /** undefined where there is none, or the user may not read it */
  head(key: string): Promise<(Stored & { readonly id: string | undefined }) | undefined>;
}

export interface UploadTask {
  /** Unchanged when the upload is retried. */
  readonly id: string;
  readonly path: string;
  /** Wanted key; gets a suffix where another object has it. */
  readonly key: string;
  readonly progress?: Progress | undefined;
}

export interface UploadResult {
  readonly key: string;
  readonly etag: string;
  /** Whether the storage confirmed the checksum of every byte. */
  readonly verified: boolean;
}

/** Part size, below which one request is enough; S3 accepts parts from 5 MiB on. */
const PART_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
const MAX_KEYS = 1000;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.ts': 'video/mp2t',
  '.vtt': 'text/vtt',
};

/**
 * Uploads a file, in parts where it is large, and resumes an earlier try.
 * @param onProgress called after each stored part
 * @returns undefined when the file is gone
 * @throws BucketError, errors of the file system: the upload has to be tried again
 */
export async function upload(
  task: UploadTask,
  bucket: Bucket,
  onProgress: (progress: Progress | undefined) => void,
): Promise<UploadResult | undefined> {
  const size = await sizeOf(task.path);
  let { progress } = task;
  if (progress !== undefined && (size !== progress.size || bucket.place !== progress.place)) {
    // stored parts are useless; another bucket may not even be reachable any more
    if (bucket.place === progress.place) await discard(bucket, progress);
    progress = undefined;
    onProgress(undefined);
  }
  if (size === undefined) return undefined;
  const contentType = CONTENT_TYPES[extname(task.path).toLowerCase()] ?? 'application/octet-stream';
  const place = (key: string): Promise<UploadResult | undefined> => {
    const object = { key, id: task.id, contentType };
    if (size <= PART_BYTES) return putWhole(bucket, object, { path: task.path, start: 0, end: size });
    return putParts(bucket, object, task.path, size, progress, onProgress);
  };
  for (let copy = progress === undefined ? 0 : -1; copy < MAX_KEYS; copy++) {
    const result = await place(progress?.key ?? withSuffix(task.key, copy));
    if (result !== undefined) return result;
    progress = undefined;
  }
  throw new Error(`all keys like ${task.key} are in use`);
}

/** @returns undefined where the key belongs to another object */
async function putWhole(bucket: Bucket, object: NewObject, range: FileRange): Promise<UploadResult | undefined> {
  const { key, id } = object;
  const md5 = await md5Of(range);
  try {
    const stored = await bucket.put(object, range, md5.toString('base64'));
    return { key, etag: unquoted(stored.etag), verified: isVerified(stored, md5) };
  } catch (error) {
    if (!isCode(error, 'PreconditionFailed')) throw error;
    // the response to an earlier try may have been lost
    const found = await bucket.head(key);
    if (found?.id !== id) return undefined;
    return { key, etag: unquoted(found.etag), verified: isVerified(found, md5) };
  }
}

/** @returns undefined where the key belongs to another object */
async function putParts(
  bucket: Bucket,
  object: NewObject,
  path: string,
  size: number,
  before: Progress | undefined,
  onProgress: (progress: Progress | undefined) => void,
): Promise<UploadResult | undefined> {
  const { key, id } = object;
  const { place } = bucket;
  let progress = before;
  if (progress === undefined) {
    // find that out before everything is sent
    const found = await bucket.head(key);
    if (found !== undefined) return found.id === id ? { key, etag: unquoted(found.etag), verified: false } : undefined;
    const partSize = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS / MIB) * MIB);
    progress = { place, key, uploadId: await bucket.create(object), size, partSize, etags: [], verified: true };
    onProgress(progress);
  }
  const { uploadId, partSize } = progress;
  try {
    for (let start = progress.etags.length * partSize; start < size; start += partSize) {
      const range = { path, start, end: Math.min(size, start + partSize) };
      const md5 = await md5Of(range);
      const stored: Stored = await bucket.putPart(
        key,
        uploadId,
        progress.etags.length + 1,
        range,
        md5.toString('base64'),
      );
      const verified: boolean = progress.verified && isVerified(stored, md5);
      progress = { ...progress, etags: [...progress.etags, stored.etag], verified };
      onProgress(progress);
    }
    const etag = await bucket.complete(key, uploadId, progress.etags);
    return { key, etag: unquoted(etag), verified: progress.verified };
  } catch (error) {
    const isTaken = isCode(error, 'PreconditionFailed');
    // parts that the storage does not have (any more) are uploaded again
    if (!isTaken && !isCode(error, 'InvalidPart') && !isCode(error, 'NoSuchUpload')) throw error;
    await discard(bucket, progress);
    onProgress(undefined);
    // it may be complete with only the response lost
    const found = await bucket.head(key);
    if (found?.id === id) return { key, etag: unquoted(found.etag), verified: progress.verified };
    if (isTaken) return undefined;
    throw error;
  }
}

/** Deletes the parts of an unfinished upload. */
async function discard(bucket: Bucket, { key, uploadId }: Progress): Promise<void> {
  try {
    await bucket.abort(key, uploadId);
  } catch (error) {
    if (!isCode(error, 'NoSuchUpload')) throw error;
  }
}

/**
 * Whether a storage confirmed the content: by an ETag that is its MD5, or, with encryption by a customer's key, by
 * accepting the Content-MD5.
 * @throws BucketError when the content differs
 */
function isVerified({ etag, encrypted }: Stored, md5: Buffer): boolean {
  const given = unquoted(etag).toLowerCase();
  if (given === md5.toString('hex') || encrypted) return true;
  if (/^[\da-f]{32}$/.test(given)) throw new BucketError('BadDigest', 'the storage has other content than was sent');
  return false;
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(unless('ENOENT')))?.size;
}

async function md5Of({ path, start, end }: FileRange): Promise<Buffer> {
  const hash = createHash('md5');
  if (end > start)
    for await (const chunk of createReadStream(path, { start, end: end - 1 })) hash.update(chunk as Buffer);
  return hash.digest();
}

/** An ETag without its quotes. */
export function unquoted(etag: string): string {
  return etag.replaceAll('"', '');
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof BucketError && error.code === code;
}
