import type { Queue } from './queue.ts';
import type { WaitingLine } from './waiting-line.ts';
import { diskCalls, type DiskCalls, type RootCalls } from './disk-calls.ts';

/** Limit of the memory of one recording or dump. */
export const MAX_BYTES = 64 * 1024 * 1024;
/** Limit of the memory of all of them. */
const MAX_ALL = 512 * 1024 * 1024;

/** The disks that recordings, or dumps, go to, and the memory that waits for them. */
export class Disks {
  readonly #calls: DiskCalls;
  #recordings = 0;
  #queued = 0;

  constructor(calls = diskCalls) {
    this.#calls = calls;
  }

  /**
   * @param root folder of the recording, or what else stands for a disk; few calls for one root run at a time
   * @param queue counts the bytes that wait, too
   * @param folder in it, as the log names the disk
   */
  open(root: string, queue?: Queue, folder = root): Disk {
    this.#recordings++;
    return new Disk(this.#calls.of(root, folder), this, queue);
  }

  /** Counts bytes that wait. */
  count(bytes: number): void {
    this.#queued += bytes;
  }

  /** Whether so many bytes of one are too many: more than its limit, or more than its share while all have too many. */
  isOver(own: number): boolean {
    return own > MAX_BYTES || (this.#queued > MAX_ALL && own > MAX_ALL / this.#recordings);
  }

  /** A recording is over. */
  release(): void {
    this.#recordings--;
  }
}

/** The disk of one recording or dump: the limit of its calls, and the bytes that wait for it. */
export class Disk {
  readonly #calls: RootCalls;
  readonly #disks: Disks;
  readonly #queue: Queue | undefined;
  readonly #line: WaitingLine | undefined;
  #queued = 0;

  constructor(calls: RootCalls, disks: Disks, queue?: Queue) {
    this.#calls = calls;
    this.#disks = disks;
    this.#queue = queue;
    this.#line = queue?.join();
  }

  /** Bytes that wait to be written. */
  get queued(): number {
    return this.#queued;
  }

  /** More waits for it than may. */
  get isOverloaded(): boolean {
    return this.#disks.isOver(this.#queued);
  }

  /** Counts bytes that wait, or with a negative number those that were written. */
  count(bytes: number): void {
    if (bytes > 0 && this.#queue !== undefined) this.#queue.came += bytes;
    this.#resize(bytes);
  }

  /** Counts bytes that wait no longer, and will not be written. */
  drop(bytes: number): void {
    if (this.#queue !== undefined) this.#queue.dropped += bytes;
    this.#resize(-bytes, false);
  }

  /** Calls the system when it is this recording's turn. */
  take<T>(call: () => Promise<T>): Promise<T> {
    return this.#calls.take(call);
  }

  /** Whether a call of any recording hangs at present: others would wait for it. */
  get hangs(): boolean {
    return this.#calls.hangs;
  }

  /** As `RootCalls.unlessHanging`. */
  unlessHanging<T>(work: () => Promise<T>): Promise<T> {
    return this.#calls.unlessHanging(work);
  }

  /** Nothing waits any more. To be called once. */
  close(): void {
    if (this.#line !== undefined) this.#queue?.leave(this.#line);
    this.#disks.release();
  }

  #resize(by: number, isTaken = true): void {
    this.#queued += by;
    this.#disks.count(by);
    if (this.#line !== undefined) this.#queue?.resize(this.#line, by, isTaken);
  }
}
