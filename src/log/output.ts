import type { Writable } from 'node:stream';
import { pino, type DestinationStream } from 'pino';

/** Bytes that wait for the reader: beyond `info`, lines below `warn` are dropped, beyond `all` every line. */
const LIMITS = { info: 1024 * 1024, all: 4 * 1024 * 1024 };
/** Time that the end of the process waits for the reader. */
const FLUSH_MS = 1000;

export interface LogOutputOptions {
  /** Target of the lines, which is never waited for. */
  readonly stream: Writable;
  /** Called for every line, including dropped ones. */
  readonly onLine?: ((json: string) => void) | undefined;
  readonly line: (json: string) => string;
  /** Called when the reader has caught up, with the number of dropped lines. */
  readonly onCaughtUp: (dropped: number) => void;
}

/**
 * Destination of pino. A reader that stops reading, such as a full pipe, blocks nothing here and costs little memory: lines are
 * dropped, those below the level `warn` first.
 */
export class LogOutput implements DestinationStream {
  /** Makes pino set `lastLevel` before each line. */
  readonly [pino.symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  readonly #options: LogOutputOptions;
  #dropped = 0;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    const { stream } = options;
    stream.on('drain', () => this.#onDrain());
    // a broken log is no reason to stop the server
    stream.on('error', () => undefined);
  }

  write(json: string): void {
    const { stream, line, onLine } = this.#options;
    onLine?.(json);
    const isUrgent = this.lastLevel >= (pino.levels.values.warn ?? 0);
    // after a dropped line, all less urgent ones are dropped until the reader has caught up
    const limit = isUrgent ? LIMITS.all : this.#dropped > 0 ? 0 : LIMITS.info;
    if (stream.writableLength > 0 && stream.writableLength + json.length > limit) this.#dropped += 1;
    else stream.write(line(json));
  }

  /** Calls back when all lines are written, including one about dropped lines, or when the reader takes too long. */
  flush(done: () => void): void {
    const { stream } = this.#options;
    const late = setTimeout(done, FLUSH_MS);
    const finish = (): void => {
      clearTimeout(late);
      done();
    };
    const next = (error?: Error | null): void => {
      if (error || stream.writableLength === 0) finish();
      else stream.write('', next);
    };
    next();
  }

  #onDrain(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#options.onCaughtUp(dropped);
  }
}
