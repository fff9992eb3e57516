import { pino, type Logger } from 'pino';

export type { Logger };

/** Names of the levels, quietest last. */
export const LOG_LEVELS: readonly string[] = [...Object.values(pino.levels.labels), 'silent'];

/**
 * The process's logger: JSON lines on standard error, or readable lines on a terminal.
 * @param level a pino level, or `silent`
 */
export function createLogger(level: string): Logger {
  if (process.stderr.isTTY) {
    return pino({
      level,
      transport: {
        target: 'pino-pretty',
        options: { destination: 2, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' },
      },
    });
  }
  return pino({ level, base: undefined }, pino.destination({ dest: 2, sync: false }));
}

const INTERVAL_MS = 1000;
/** Kinds that are told apart in one interval: their texts can hold what strangers send. */
const MAX_KINDS = 16;
const OTHER = 'faults of other kinds';

/** Faults that can come with every packet: counted, and logged by kind at most once a second. */
export class FaultLog {
  readonly #log: Logger;
  readonly #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  count(fault: string): void {
    const kind = this.#counts.has(fault) || this.#counts.size < MAX_KINDS ? fault : OTHER;
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    this.#timer ??= setTimeout(() => this.#flush(), INTERVAL_MS).unref();
  }

  /** Logs what is counted and stops the timer. */
  close(): void {
    clearTimeout(this.#timer);
    this.#flush();
  }

  #flush(): void {
    this.#timer = undefined;
    for (const [fault, count] of this.#counts) this.#log.warn({ count }, fault);
    this.#counts.clear();
  }
}
