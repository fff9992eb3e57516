import { randomBytes } from 'node:crypto';
import { BucketError } from '../../../src/recording/delivery/upload.ts';
import type { StoredFiles } from '../../../src/recording/delivery/stored-files.ts';
import type { StoredFile } from '../../../src/recording/finished/entry.ts';

/** Uploaded files of a node that has no bucket. */
export const NO_STORED: Pick<StoredFiles, 'reaches' | 'read'> = {
  reaches: () => false,
  read: async () => {
    throw new BucketError('NoUpload', 'the application has no Upload on this node');
  },
};

/** A bucket in memory with one object, which notes what is read of it. */
export function memoryBucket(content: number | Buffer, more: Partial<StoredFile> = {}) {
  const bytes = typeof content === 'number' ? randomBytes(content) : content;
  const size = bytes.length;
  const file: StoredFile = { bucket: 'b', key: 'k', url: 'http://s3/b/k', etag: 'one', size, ...more };
  const reads: { readonly start: number; readonly end: number; readonly etag: string | undefined }[] = [];
  const state = { etag: 'one', isReached: true, held: Promise.resolve() };
  const stored: Pick<StoredFiles, 'reaches' | 'read'> = {
    reaches: (_names, { url }) => state.isReached && url === file.url,
    read: async (_names, { etag }, start, end, signal) => {
      reads.push({ start, end, etag });
      await state.held;
      signal?.throwIfAborted();
      if (etag !== undefined && etag !== state.etag) throw new BucketError('PreconditionFailed', 'it has another ETag');
      return { bytes: new Uint8Array(bytes.subarray(start, end)).buffer, etag: state.etag };
    },
  };
  return { bytes, file, reads, state, stored };
}
