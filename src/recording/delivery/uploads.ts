import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Turns } from '../../lib/turns.ts';
import type { Progress, UploadResult, UploadTask } from './upload.ts';

export interface BucketSettings {
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Undefined, like the other key: what the environment offers. */
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly forcePathStyle?: boolean | undefined;
}

/** To the thread. */
export interface UploadRequest {
  readonly number: number;
  readonly task: UploadTask;
  readonly settings: BucketSettings;
}

/** From the thread: any number with `progress`, then one of the others. */
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

/** How long the thread, and the memory that it takes, outlive the last upload. */
const IDLE_MS = 5 * 60_000;
/** At once, of all applications; the others wait. */
const MOST = 16;

/**
 * Uploads in a thread of its own, which is only there while it is used: loading the client of S3, hashing and encrypting
 * would keep media waiting.
 */
export class Uploads {
  readonly #turns = new Turns(MOST);
  readonly #running = new Map<number, Running>();
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #number = 0;
  #closed = false;

  /**
   * @param onProgress is called after each part that is stored
   * @returns undefined when the file is gone
   * @throws Error with the reason of a failure
   */
  run(
    task: UploadTask,
    settings: BucketSettings,
    onProgress: (progress: Progress | undefined) => void,
  ): Promise<UploadResult | undefined> {
    return this.#turns.take(() => this.#run(task, settings, onProgress));
  }

  /** Ends the thread, and with it what runs there. Idempotent. */
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
