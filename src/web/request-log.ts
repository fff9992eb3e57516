import { LogController, type FastifyBaseLogger, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Bindings, ChildLoggerOptions } from 'pino';
import type { Logger } from '../log/log.ts';

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/**
 * Options of Fastify for a log of requests that fail with 5xx, each line with the request's id. Requests that log nothing, nearly
 * all, cost no logger of their own.
 */
export function logFailures(log: Logger) {
  const failures: FastifyBaseLogger = log.child({}, { level: 'warn' });
  // Fastify makes the logger of each request this way; what an option for that returns it checks each time
  const { child } = failures;
  failures.child = function (this: FastifyBaseLogger, bindings, options) {
    return new LazyLog(() => child.call(this, bindings, options)) as unknown as FastifyBaseLogger;
  };
  return { loggerInstance: failures, logController: failureLog() };
}

/** Leaves out the lines of every request, which are below the level. Fastify is loaded where this is called. */
function failureLog(): LogController {
  class FailureLog extends LogController {
    override incomingRequest(): void {}

    override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
      if (error) super.requestCompleted(error, request, reply);
    }
  }
  return new FailureLog({ requestIdLogLabel: 'requestId' });
}

/** A logger that is made for its first line. */
class LazyLog {
  readonly #make: () => FastifyBaseLogger;
  #own: FastifyBaseLogger | undefined;

  constructor(make: () => FastifyBaseLogger) {
    this.#make = make;
  }

  get own(): FastifyBaseLogger {
    return (this.#own ??= this.#make());
  }

  get level(): string {
    return this.own.level;
  }

  child(bindings: Bindings, options?: ChildLoggerOptions): FastifyBaseLogger {
    return this.own.child(bindings, options);
  }
}

for (const level of LEVELS) {
  Object.defineProperty(LazyLog.prototype, level, {
    value(this: LazyLog, ...line: [string]) {
      this.own[level](...line);
    },
  });
}
