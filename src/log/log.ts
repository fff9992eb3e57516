import { pino, type DestinationStream, type Logger } from 'pino';
import type { EventId } from './events.ts';
import { LogOutput } from './output.ts';
import { textLine } from './text.ts';

export type { Logger };

declare module 'pino' {
  namespace pino {
    interface LogFnFields {
      readonly event?: EventId;
    }
  }
}

/** Counts of the lines that this process has logged. */
export class LogCounts {
  /** By level. */
  readonly lines = new Map<string, number>();
  readonly events = new Map<EventId, number>();
  /** Faults in packets, by the module that counts them; they are logged together. */
  readonly faults = new Map<string, number>();
}

export const logCounts = new LogCounts();

function addOne<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

const LEVELS: readonly string[] = [...Object.values(pino.levels.labels), 'silent'];
const FORMATS = ['text', 'json'] as const;

type LogFormat = (typeof FORMATS)[number];

/**
 * Log settings: the level of KILN_LOG_LEVEL, and the format (text or json) of `--log-format`, or else of KILN_LOG; the default
 * is text on a terminal.
 * @throws Error naming the option or the variable with a wrong value
 */
export function logSettings(
  env: NodeJS.ProcessEnv,
  isTerminal: boolean,
  option?: string,
): { level: string; format: LogFormat } {
  const level = oneOf('KILN_LOG_LEVEL', env.KILN_LOG_LEVEL || 'info', LEVELS);
  if (option !== undefined) return { level, format: oneOf('--log-format', option, FORMATS) };
  return { level, format: oneOf('KILN_LOG', env.KILN_LOG || (isTerminal ? 'text' : 'json'), FORMATS) };
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((word) => word === value);
  if (found === undefined) throw new Error(`${name}: "${value}" is not one of ${allowed.join(', ')}`);
  return found;
}

/**
 * Logger of the process, on standard error. It never waits for its reader: lines that are not read in time are dropped and
 * counted.
 * @param level a pino level, or `silent`
 * @param look JSON by default; `color` is for text on a terminal; `onLine` is called with every line, as JSON
 */
export function createLogger(
  level: string,
  look: { format?: LogFormat; color?: boolean; onLine?: (json: string) => void } = {},
): Logger {
  const { format = 'json', color = false, onLine } = look;
  if (level === 'silent') return jsonLogger(level, { write: () => undefined });
  const output = new LogOutput({
    stream: process.stderr,
    onLine,
    line: format === 'text' ? (json) => textLine(json, color) : (json) => json,
    onCaughtUp: (dropped) =>
      log.warn({ dropped }, `${dropped} lines of the log were dropped because they were not read in time`),
  });
  const log = jsonLogger(level, output);
  return log;
}

/**
 * Matches a long value in the query of a URL, percent-encoded or not. Policies, signatures and keys are longer than this; the
 * names of their parameters differ between virtual hosts.
 */
const LONG_QUERY_VALUE =
  /((?:[?&]|%3f|%26)(?:(?!%3d|%26)[\w.~%-]){1,64}(?:=|%3d))(?:(?!%26|%23)[^&#\s"'\\<>()[\]]){17,}/gi;

/** Hides policies, signatures and keys in URLs. */
function withoutSecrets(line: string): string {
  return line.replace(LONG_QUERY_VALUE, '$1***');
}

/** Logs lines of JSON, with names of levels and times of ISO 8601, and without the long values in queries of URLs. */
export function jsonLogger(level: string, destination: DestinationStream): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        streamWrite: withoutSecrets,
        logMethod(args, method, level) {
          addOne(logCounts.lines, pino.levels.labels[level] ?? 'other');
          const fields = args[0] as string | pino.LogFnFields;
          if (typeof fields === 'object' && fields.event !== undefined) addOne(logCounts.events, fields.event);
          method.apply(this, args);
        },
      },
    },
    destination,
  );
}

const INTERVAL_MS = 1000;
/** Limit of kinds that are counted separately in one interval: their texts may contain data of clients. */
const MAX_KINDS = 16;
const OTHER = 'faults of other kinds';

/** Counts faults that can come with every packet, and logs them by kind at most once a second. */
export class FaultLog {
  readonly #log: Logger;
  readonly #module: string;
  readonly #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #latest: string | undefined;

  constructor(log: Logger) {
    this.#log = log;
    this.#module = String(log.bindings().module ?? 'server');
  }

  /** Text of the last fault; undefined before the first one. */
  get latest(): string | undefined {
    return this.#latest;
  }

  count(fault: string): void {
    this.#latest = fault;
    addOne(logCounts.faults, this.#module);
    const kind = this.#counts.has(fault) || this.#counts.size < MAX_KINDS ? fault : OTHER;
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    this.#timer ??= setTimeout(() => this.#flush(), INTERVAL_MS).unref();
  }

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
