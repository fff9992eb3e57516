import { LogController, type FastifyBaseLogger, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Bindings, ChildLoggerOptions } from 'pino';
import type { Logger } from '../log/log.ts';

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/**
 * Options of Fastify for a log of requests that fail with 5xx, each line with the request's id. Requests that log nothing, nearly
 * all, cost no logger of their own.
 */
export function logFailures(log: Logger) {
  return {
    loggerInstance: log.child({}, { level: 'warn' }) as FastifyBaseLogger,
    logController: new FailureLog({ requestIdLogLabel: 'requestId' }),
    childLoggerFactory: (parent: FastifyBaseLogger, bindings: Bindings, options: ChildLoggerOptions) =>
      new RequestLog(parent, bindings, options) as unknown as FastifyBaseLogger,
  };
}

/** Leaves out the lines of every request, which are below the level. */
class FailureLog extends LogController {
  override incomingRequest(): void {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    if (error) super.requestCompleted(error, request, reply);
  }
}

/** Makes the logger of a request with its first line. */
class RequestLog {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Bindings;
  readonly #options: ChildLoggerOptions;
  #own: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Bindings, options: ChildLoggerOptions) {
    this.#parent = parent;
    this.#bindings = bindings;
    this.#options = options;
  }

  get own(): FastifyBaseLogger {
    return (this.#own ??= this.#parent.child(this.#bindings, this.#options));
  }

  get level(): string {
    return this.own.level;
  }

  child(bindings: Bindings, options?: ChildLoggerOptions): FastifyBaseLogger {
    return this.own.child(bindings, options);
  }
}

for (const level of LEVELS) {
  Object.defineProperty(RequestLog.prototype, level, {
    value(this: RequestLog, ...line: [string]) {
      this.own[level](...line);
    },
  });
}
