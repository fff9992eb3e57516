import { isIP } from 'node:net';
import { ListenError } from '../../core/listen-error.ts';
import type { SrtOption } from '../../lib/srt-options.ts';
import type { Logger } from '../../log/log.ts';
import type { SrtConnection } from './connection.ts';
import { SrtError } from './error.ts';
import { SrtListener, type SrtCaller } from './listener.ts';
import { REJECTION } from './rejection.ts';
import type { SrtRuntime } from './runtime.ts';

export interface AwaitedPort {
  /** Address of this machine; `0.0.0.0` or `::` for all of a family. */
  readonly host: string;
  readonly port: number;
  /** Stream id that callers must give; empty: any. */
  readonly streamId: string;
  readonly options: readonly SrtOption[];
  /** Whether an address may call. */
  readonly permits: (address: string) => boolean;
  readonly log: Logger;
}

/** Time without a use after which the port is closed: longer than a pull pauses between attempts. */
const LINGER_MS = 8000;

/**
 * A port that takes one caller at a time, open while it is in use and for some seconds after that: a pull may come again. One whose
 * signal aborts, other than by a time limit, does not.
 */
export class AwaitedCaller {
  readonly #options: AwaitedPort;
  readonly #listener: SrtListener;
  readonly #onClose: () => void;
  #waiting: ((connection: SrtConnection) => void) | undefined;
  #connection: SrtConnection | undefined;
  #closing: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  /** @throws SrtError when the port cannot be opened or an option is refused */
  constructor(runtime: SrtRuntime, options: AwaitedPort, onClose: () => void) {
    const { host, port, log } = options;
    if (isIP(host) === 0)
      throw new SrtError('a listener has an address of this machine, or 0.0.0.0, in place of a name');
    this.#options = options;
    this.#onClose = onClose;
    try {
      this.#listener = new SrtListener(runtime, {
        host,
        port,
        options: options.options,
        log,
        refuse: (caller) => this.#objection(caller),
        connection: (connection) => this.#take(connection),
      });
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
      const why = error.code === 'EADDRINUSE' ? 'it is in use' : error.code;
      throw new SrtError(`SRT cannot listen on UDP port ${port} of ${host}: ${why}`);
    }
    this.#linger();
  }

  /** Whether a pull waits here or has a caller. */
  get isInUse(): boolean {
    return this.#waiting !== undefined || this.#connection?.closed === false;
  }

  /** Whether the port is open at that address, and callers are asked for the same. */
  isFor({ host, streamId, options }: Pick<AwaitedPort, 'host' | 'streamId' | 'options'>): boolean {
    const own = this.#options;
    return (
      this.#closed === undefined &&
      host === own.host &&
      streamId === own.streamId &&
      textOf(options) === textOf(own.options)
    );
  }

  /**
   * Waits for a caller, while nothing else uses the port.
   * @returns the connection, whose handlers must be set in the same turn
   * @throws SrtError when the signal aborts before that
   */
  next(signal: AbortSignal): Promise<SrtConnection> {
    clearTimeout(this.#closing);
    return new Promise((resolve, reject) => {
      const over = (): void => {
        this.#waiting = undefined;
        signal.removeEventListener('abort', onAbort);
        this.#linger();
      };
      const onAbort = (): void => {
        over();
        // one that was late comes again
        if ((signal.reason as Error).name !== 'TimeoutError') void this.close();
        reject(new SrtError(`there was no caller on UDP port ${this.#options.port} in time`));
      };
      this.#waiting = (connection) => {
        over();
        this.#connection = connection;
        resolve(connection);
      };
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
    });
  }

  /** Closes the port, which nothing uses any more. Idempotent. */
  close(): Promise<void> {
    clearTimeout(this.#closing);
    this.#closed ??= this.#listener.free().finally(() => this.#onClose());
    return this.#closed;
  }

  #objection({ peer, streamId }: SrtCaller): number | undefined {
    if (!this.#options.permits(peer.address)) return REJECTION.forbidden;
    if (this.#options.streamId !== '' && streamId !== this.#options.streamId) return REJECTION.badRequest;
    return this.#waiting === undefined ? REJECTION.overload : undefined;
  }

  #take(connection: SrtConnection): void {
    if (this.#waiting === undefined) connection.close();
    else this.#waiting(connection);
  }

  #linger(): void {
    clearTimeout(this.#closing);
    this.#closing = setTimeout(() => {
      if (this.isInUse) this.#linger();
      else void this.close();
    }, LINGER_MS).unref();
  }
}

function textOf(options: readonly SrtOption[]): string {
  return options
    .map(({ name, value }) => `${name}=${value}`)
    .sort()
    .join('&');
}
