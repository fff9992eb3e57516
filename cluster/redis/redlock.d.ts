// redlock's `exports` carries no types; what is used of it.
declare module 'redlock' {
  import type { EventEmitter } from 'node:events';

  interface Settings {
    readonly retryCount?: number;
    /** Milliseconds. */
    readonly retryDelay?: number;
  }

  export class ResourceLockedError extends Error {}

  export class ExecutionError extends Error {
    readonly attempts: readonly Promise<{ readonly votesAgainst: ReadonlyMap<unknown, Error> }>[];
  }

  export default class Redlock extends EventEmitter {
    constructor(clients: Iterable<unknown>, settings?: Settings);
    using<T>(
      resources: string[],
      duration: number,
      settings: Settings,
      routine: (signal: AbortSignal) => Promise<T>,
    ): Promise<T>;
  }
}
