import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Limiter } from '../../lib/limiter.ts';
import type { Progress, UploadResult, UploadTask } from './upload.ts';

export interface BucketSettings {
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Without both keys the credentials come from the environment. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle?: boolean | undefined;
}

/** Message to the thread. */
export interface UploadRequest {
  readonly number: number;
  readonly task: UploadTask;
  readonly settings: BucketSettings;
}

/** Messages from the thread: any number with `progress`, then one of the others. */
export interface UploadAnswer {
  readonly number: number;
  readonly progress?: { readonly now: Progress | undefined };
  readonly done?: { readonly result: UploadResult | undefined };
  readonly failure?: string;
}

interface Running {
  readonly thread: Worker;
  readonly resolve: (result: UploadResult | undefined) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: (progress: Progress | undefined) => void;
}

/** Time after the last upload until the thread ends, which frees its memory. */
const IDLE_MS = 5 * 60_000;
/** Concurrent uploads of all applications. */
const MOST = 16;

/**
 * Runs uploads in a thread that exists only while it is used: loading the S3 client, hashing and encryption would
 * delay media.
 */
export class Uploads {
  readonly #limiter = new Limiter(MOST);
  readonly #running = new Map<number, Running>();
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #number = 0;
  #closed = false;

  /**
   * @param onProgress called after each stored part
   * @returns undefined when the file is gone
   * @throws Error with the reason of a failure
   */
  run(
    task: UploadTask,
    settings: BucketSettings,
    onProgress: (progress: Progress | undefined) => void,
  ): Promise<UploadResult | undefined> {
    return this.#limiter.run(() => this.#run(task, settings, onProgress));
  }

  /** Ends the thread and its uploads. Idempotent. */
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
    task: UploadTask,
    settings: BucketSettings,
    onProgress: (progress: Progress | undefined) => void,
  ): Promise<UploadResult | undefined> {
    if (this.#closed) throw new Error('the node is stopping');
    clearTimeout(this.#idle);
    const thread = (this.#thread ??= this.#start());
    const number = ++this.#number;
    const request: UploadRequest = { number, task, settings };
    const { promise, resolve, reject } = Promise.withResolvers<UploadResult | undefined>();
    this.#running.set(number, { thread, resolve, reject, onProgress });
    thread.postMessage(request);
    try {
      return await promise;
    } finally {
      this.#running.delete(number);
      if (this.#running.size === 0) this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
    }
  }

  #start(): Worker {
    const thread = new Worker(join(import.meta.dirname, `upload-thread${extname(import.meta.filename)}`));
    let reason = 'the thread for uploads has ended';
    thread.on('message', ({ number, progress, done, failure }: UploadAnswer) => {
      const running = this.#running.get(number);
      if (progress !== undefined) running?.onProgress(progress.now);
      else if (done !== undefined) running?.resolve(done.result);
      else running?.reject(new Error(failure));
    });
    thread.on('error', (error) => (reason = `the thread for uploads has died: ${(error as Error).message}`));
    thread.once('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const running of this.#running.values()) if (running.thread === thread) running.reject(new Error(reason));
    });
    return thread;
  }
}
