import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Limiter } from '../../lib/limiter.ts';
import { BucketError, type Progress, type UploadResult, type UploadTask } from './upload.ts';

export interface BucketSettings {
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Without both keys the credentials come from the environment. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle?: boolean | undefined;
}

/** Bytes `start` to `end` of an object; `end` is exclusive, and after `start`. */
export interface ObjectRange {
  readonly key: string;
  /** Bytes of the whole object. */
  readonly size: number;
  /** Without quotes; undefined where any version will do. */
  readonly etag: string | undefined;
  readonly start: number;
  readonly end: number;
}

export interface ObjectBytes {
  readonly bytes: ArrayBuffer;
  /** Without quotes; empty where the storage has none. */
  readonly etag: string;
}

type Work =
  | { readonly task: UploadTask; readonly settings: BucketSettings }
  | { readonly range: ObjectRange; readonly settings: BucketSettings };

/** Message to the thread. `abort` ends the work of that number. */
export type BucketRequest = { readonly number: number } & (Work | { readonly abort: true });

/** Messages from the thread: any number with `progress`, then one of the others. */
export interface BucketAnswer {
  readonly number: number;
  readonly progress?: { readonly now: Progress | undefined };
  readonly done?: { readonly result: UploadResult | ObjectBytes | undefined };
  /** `code` is that of a BucketError. */
  readonly failure?: { readonly message: string; readonly code?: string };
}

interface Running {
  readonly thread: Worker;
  readonly resolve: (result: UploadResult | ObjectBytes | undefined) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: (progress: Progress | undefined) => void;
}

/** Time after the last request until the thread ends, which frees its memory. */
const IDLE_MS = 5 * 60_000;
/** Concurrent uploads, and reads, of all applications. */
const MAX_UPLOADS = 16;
export const MAX_READS = 32;
const MAX_WAITING_READS = 256;

/**
 * Uploads files to buckets and reads objects, in a thread that exists only while it is used: loading the S3 client, hashing and
 * encryption would delay media.
 */
export class Buckets {
  readonly #uploads = new Limiter(MAX_UPLOADS);
  readonly #reads = new Limiter(MAX_READS, MAX_WAITING_READS);
  readonly #running = new Map<number, Running>();
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #number = 0;
  #closed = false;

  /**
   * @param onProgress called after each stored part
   * @returns undefined when the file is gone
   * @throws Error with the reason of a failure; the reason of the signal
   */
  async upload(
    task: UploadTask,
    settings: BucketSettings,
    signal: AbortSignal,
    onProgress: (progress: Progress | undefined) => void,
  ): Promise<UploadResult | undefined> {
    const result = await this.#uploads.run(() => this.#run({ task, settings }, signal, onProgress));
    return result as UploadResult | undefined;
  }

  /**
   * Reads a part of an object, which is small: all of it is held.
   * @throws BucketError, `Busy` where too many wait; the reason of the signal
   */
  async read(range: ObjectRange, settings: BucketSettings, signal?: AbortSignal): Promise<ObjectBytes> {
    const result = await this.#reads.run(
      () => this.#run({ range, settings }, signal),
      () => new BucketError('Busy', 'too much is read from buckets at present'),
    );
    return result as ObjectBytes;
  }

  /** Ends the thread and what it does. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    await this.#end();
  }

  async #end(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }

  async #run(
    work: Work,
    signal: AbortSignal | undefined,
    onProgress: (progress: Progress | undefined) => void = () => undefined,
  ): Promise<UploadResult | ObjectBytes | undefined> {
    signal?.throwIfAborted();
    if (this.#closed) throw new BucketError('Closed', 'the node is stopping');
    clearTimeout(this.#idle);
    const thread = (this.#thread ??= this.#start());
    const number = ++this.#number;
    const { promise, resolve, reject } = Promise.withResolvers<UploadResult | ObjectBytes | undefined>();
    const send = (request: BucketRequest): void => thread.postMessage(request);
    const onAbort = (): void => {
      send({ number, abort: true });
      reject(signal?.reason as Error);
    };
    this.#running.set(number, { thread, resolve, reject, onProgress });
    signal?.addEventListener('abort', onAbort, { once: true });
    send({ number, ...work });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#running.delete(number);
      if (this.#running.size === 0 && !this.#closed) this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
    }
  }

  #start(): Worker {
    const thread = new Worker(join(import.meta.dirname, `bucket-thread${extname(import.meta.filename)}`));
    let reason = 'the thread for buckets has ended';
    thread.on('message', ({ number, progress, done, failure }: BucketAnswer) => {
      const running = this.#running.get(number);
      if (progress !== undefined) running?.onProgress(progress.now);
      else if (done !== undefined) running?.resolve(done.result);
      else if (failure !== undefined) running?.reject(errorOf(failure));
    });
    thread.on('error', (error) => (reason = `the thread for buckets has died: ${(error as Error).message}`));
    thread.once('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const running of this.#running.values())
        if (running.thread === thread) running.reject(new BucketError('Ended', reason));
    });
    return thread;
  }
}

function errorOf({ message, code }: NonNullable<BucketAnswer['failure']>): Error {
  return code === undefined ? new Error(message) : new BucketError(code, message);
}
