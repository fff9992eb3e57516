import type { Logger } from '../../log/log.ts';
import type { OutboundGuard } from '../outbound/guard.ts';
import { callSrt } from './caller.ts';
import type { SrtConnection } from './connection.ts';
import { SrtError } from './error.ts';
import type { SrtQuery } from './query.ts';
import { SrtRuntime } from './runtime.ts';

/** Addresses of a host that are called, one after the other. */
const MAX_ADDRESSES = 4;

export interface SrtTarget extends Pick<SrtQuery, 'streamId' | 'options'> {
  readonly host: string;
  readonly port: number;
  /** Ends the call. */
  readonly signal: AbortSignal;
}

/** Calls SRT listeners that the guard allows. libsrt runs from the first call on. */
export class SrtCalls {
  readonly #guard: OutboundGuard;
  readonly #log: Logger;
  readonly #connections = new Set<SrtConnection>();
  #runtime: SrtRuntime | undefined;

  constructor(guard: OutboundGuard, log: Logger) {
    this.#guard = guard;
    this.#log = log;
  }

  /**
   * @returns the connection, whose handlers must be set in the same turn
   * @throws SrtError when the listener refuses or does not answer; SrtMissingError without libsrt; the guard's errors
   */
  async call({ host, port, ...call }: SrtTarget): Promise<SrtConnection> {
    const addresses = await this.#guard.addresses(host, port, 'udp');
    this.#runtime ??= SrtRuntime.open(this.#log);
    const failures: string[] = [];
    for (const address of addresses.slice(0, MAX_ADDRESSES)) {
      try {
        return this.#keep(await callSrt(this.#runtime, { ...call, address, port }));
      } catch (error) {
        if (!(error instanceof SrtError) || call.signal.aborted) throw error;
        failures.push(error.message);
      }
    }
    throw new SrtError(failures.join('; '));
  }

  #keep(connection: SrtConnection): SrtConnection {
    for (const one of this.#connections) if (one.closed) this.#connections.delete(one);
    this.#connections.add(connection);
    return connection;
  }

  /** Closes the remaining connections, and libsrt. Idempotent. */
  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    await this.#runtime?.close();
  }
}
