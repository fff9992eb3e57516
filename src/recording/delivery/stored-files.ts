import type { StoredFile } from '../finished/entry.ts';
import type { ApplicationNames } from '../finished/recorded-index.ts';
import type { Buckets, BucketSettings, ObjectBytes } from './buckets.ts';
import { objectUrl } from './object-url.ts';
import { BucketError } from './upload.ts';

export interface StoredFilesOptions {
  readonly buckets: Pick<Buckets, 'read'>;
  /** Present Upload of an application; undefined where it has none. */
  readonly settingsOf: (vhost: string, app: string) => BucketSettings | undefined;
}

/** Uploaded files, which are read with what this node's configuration has of their application: another node may have something else. */
export class StoredFiles {
  readonly #options: StoredFilesOptions;

  constructor(options: StoredFilesOptions) {
    this.#options = options;
  }

  /** Whether the application uploads to where a file is. */
  reaches({ vhost, app }: ApplicationNames, { bucket, key, url }: StoredFile): boolean {
    const settings = this.#options.settingsOf(vhost, app);
    return settings !== undefined && objectUrl({ ...settings, bucket }, key) === url;
  }

  /**
   * Reads bytes `start` to `end` of a file; `end` is exclusive.
   * @throws BucketError, of which `NoUpload` is for an application that uploads nothing; the reason of the signal
   */
  async read(
    { vhost, app }: ApplicationNames,
    { bucket, key, etag, size }: StoredFile,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<ObjectBytes> {
    const settings = this.#options.settingsOf(vhost, app);
    if (settings === undefined) throw new BucketError('NoUpload', 'the application has no Upload on this node');
    // the application may have got another bucket since
    return await this.#options.buckets.read({ key, etag, size, start, end }, { ...settings, bucket }, signal);
  }
}
