import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Watchdog } from '../lib/watchdog.ts';
import type { FaultLog } from '../log/log.ts';
import { withReusedReads } from '../protocols/reused-reads.ts';
import { Diagnostics } from './diagnostics.ts';

/** Descriptor of the first output, after the standard ones. */
export const FIRST_OUTPUT = 3;
/** Limit, in bytes, of input queued in this process. */
const HIGH_WATER = 64 * 1024;
/** Limit, in bytes, of data that are copied behind their head: cheaper than a write of two buffers. */
const JOINED_BYTES = 4096;
/** Timeouts after the end of the input: without output, and in total. */
const DRAIN_MS = 3000;
const DRAIN_LIMIT_MS = 15_000;
/** Environment variables that are passed to ffmpeg and the drivers it loads. */
const ENVIRONMENT = /^(?:PATH|LD_LIBRARY_PATH|LANG|TMPDIR|(?:LIBVA|CUDA|NVIDIA|MFX|ONEVPL)_.*)$/;

export interface ChildHandler {
  /** Bytes of an output; the handler owns the buffer. */
  output(index: number, chunk: Buffer): void;
  /** An output has ended. */
  outputEnd(index: number): void;
  /** The child accepts input again. */
  drain(): void;
  /**
   * The process has ended, or could not be started. Called once; no other call follows.
   * @param reason in words
   * @param killed whether it ended by SIGKILL or SIGTERM
   * @param done whether its exit code is 0
   */
  gone(reason: string, killed: boolean, done: boolean): void;
}

export interface ChildOptions {
  readonly path: string;
  readonly args: readonly string[];
  /** Number of pipes that the child writes to, from `pipe:3` on. */
  readonly outputs: number;
  readonly handler: ChildHandler;
  readonly faults: FaultLog;
  /** Descriptor of a file to copy as standard input; absent to use `write`. */
  readonly input?: number;
}

/**
 * One ffmpeg process that reads its standard input and writes one pipe per output; the terminal's Ctrl-C does not reach
 * it. It ends when this process dies, because its input ends or its outputs have no reader.
 */
export class FfmpegChild {
  readonly diagnostics: Diagnostics;
  readonly #handler: ChildHandler;
  readonly #faults: FaultLog;
  #process: ChildProcess | undefined;
  #input: Duplex | undefined;
  readonly #outputs: Socket[] = [];
  /** Number of outputs that are open, and of the process. */
  #open = 1;
  /** Defined from the end of the input on. */
  #deadline: Watchdog | undefined;
  #endedAt = 0;
  #spawnError: Error | undefined;
  #gone = false;

  constructor({ path, args, outputs, handler, faults, input }: ChildOptions) {
    this.#handler = handler;
    this.#faults = faults;
    this.diagnostics = new Diagnostics(faults);
    try {
      this.#start(path, args, outputs, input);
    } catch (error) {
      // some failures to spawn are thrown, others come as an event
      this.#spawnError = error as Error;
      process.nextTick(() => this.#end());
    }
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Writes input. @returns false if the next write should wait for `drain`; all data are accepted even then */
  write(head: Buffer, data?: Buffer): boolean {
    const input = this.#input;
    if (input === undefined || !input.writable) return true;
    if (data === undefined) {
      input.write(head);
    } else if (data.length <= JOINED_BYTES) {
      input.write(Buffer.concat([head, data]));
    } else {
      input.cork();
      input.write(head);
      input.write(data);
      input.uncork();
    }
    return input.writableLength < HIGH_WATER;
  }

  /** Pauses or resumes its outputs: a child blocks when their pipes are full. */
  read(isRead: boolean): void {
    for (const output of this.#outputs) {
      if (isRead) output.resume();
      else output.pause();
    }
  }

  /** Ends its input: the child writes the rest and ends, or is killed. Idempotent. */
  end(): void {
    if (this.#gone || this.#deadline !== undefined) return;
    this.#input?.end();
    this.#endedAt = performance.now();
    this.#deadline = new Watchdog(DRAIN_MS, () => this.kill());
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
    // its end is noticed only when its pipes are empty
    this.read(true);
  }

  #start(path: string, args: readonly string[], outputs: number, input: number | undefined): void {
    const pipes = Array.from({ length: FIRST_OUTPUT + outputs }, (_, fd) =>
      fd === 1 ? ('ignore' as const) : fd === 0 && input !== undefined ? input : ('pipe' as const),
    );
    const child = spawn(path, args, { stdio: pipes, env: childEnvironment(), detached: true });
    this.#process = child;
    child.once('error', (error) => this.#failed(error));
    child.once('exit', () => this.read(true));
    child.once('close', () => this.#closed());
    if (child.pid === undefined) return;
    this.#connect(child, outputs);
  }

  #connect({ stdio }: ChildProcess, outputs: number): void {
    const input = stdio[0] as Duplex | null;
    if (input !== null) {
      this.#input = input;
      input.on('drain', () => this.#handler.drain());
      // the child closed its input: it is about to end, or is killed
      input.on('error', () => this.end());
    }
    stdio[2]?.on('data', (chunk: Buffer) => this.diagnostics.push(chunk));
    for (let index = 0; index < outputs; index++) {
      const output = withReusedReads(stdio[FIRST_OUTPUT + index] as Socket, (chunk) => {
        this.#prolong();
        this.#handler.output(index, Buffer.from(chunk));
      });
      this.#outputs.push(output);
      this.#open++;
      output.once('end', () => this.#handler.outputEnd(index));
      output.once('close', () => this.#closed());
      output.on('error', (error) => this.#faults.count(`an output of ffmpeg: ${error.message}`));
    }
  }

  #prolong(): void {
    if (this.#deadline !== undefined && performance.now() - this.#endedAt < DRAIN_LIMIT_MS) this.#deadline.heard();
  }

  #failed(error: Error): void {
    if (this.pid !== undefined) return this.#faults.count(`ffmpeg: ${error.message}`);
    this.#spawnError = error;
    this.#end();
  }

  #closed(): void {
    this.#open--;
    if (this.#open === 0) this.#end();
  }

  #end(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#deadline?.close();
    const { exitCode, signalCode } = this.#process ?? {};
    this.#handler.gone(this.#reason(), signalCode === 'SIGKILL' || signalCode === 'SIGTERM', exitCode === 0);
  }

  #reason(): string {
    const { errors } = this.diagnostics;
    const { exitCode, signalCode } = this.#process ?? {};
    if (this.#spawnError !== undefined) return `ffmpeg does not start: ${this.#spawnError.message}`;
    const how = signalCode ? `ffmpeg was ended by ${signalCode}` : `ffmpeg has ended with code ${exitCode}`;
    return errors === '' ? how : `${how}: ${errors}`;
  }
}

function childEnvironment(): NodeJS.ProcessEnv {
  const known = Object.entries(process.env).filter(([name]) => ENVIRONMENT.test(name));
  // SVT-AV1 logs its configuration like an error by default
  return { ...Object.fromEntries(known), AV_LOG_FORCE_NOCOLOR: '1', SVT_LOG: '1' };
}
