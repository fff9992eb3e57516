import { pause } from '../../lib/pause.ts';
import type { Logger } from '../../log/log.ts';
import type { OutboundGuard } from '../outbound/guard.ts';
import { callSrt } from './caller.ts';
import { AwaitedCaller } from './awaited-caller.ts';
import type { SrtConnection } from './connection.ts';
import { SrtError } from './error.ts';
import type { SrtQuery } from './query.ts';
import { SrtRuntime } from './runtime.ts';

/** Addresses of a host that are called, one after the other. */
const MAX_ADDRESSES = 4;
/** libsrt gives a closed port back within about two seconds; interval of attempts to open it until then. */
const LEAVING_MS = 5000;
const AGAIN_MS = 100;

export interface SrtTarget extends Pick<SrtQuery, 'streamId' | 'options'> {
  readonly host: string;
  readonly port: number;
  /** Ends the call, and closes a port that was opened for it, unless the signal is that of a time limit. */
  readonly signal: AbortSignal;
}

/** Calls SRT listeners that the guard allows, and takes calls on ports of pulls. libsrt runs from the first call on. */
export class SrtCalls {
  readonly #guard: OutboundGuard;
  readonly #log: Logger;
  readonly #connections = new Set<SrtConnection>();
  /** Ports that callers are awaited on, by port number. */
  readonly #awaited = new Map<number, AwaitedCaller>();
  /** When ports were closed that nothing has opened since, on the monotonic clock. */
  readonly #closedAt = new Map<number, number>();
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
    const addresses = await this.#guard.addresses(host, port, 'udp', call.signal);
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

  /**
   * Waits for a caller on a port of this machine, which is open as long as something waits or is connected there.
   * @param target address and port to listen on
   * @returns the connection, whose handlers must be set in the same turn
   * @throws SrtError when the port is in use, or no caller comes before the signal aborts; SrtMissingError without libsrt
   */
  async next({ signal, ...target }: SrtTarget): Promise<SrtConnection> {
    const { port } = target;
    for (;;) {
      if (signal.aborted) throw new SrtError('the call was ended');
      const known = this.#awaited.get(port);
      if (known?.isInUse === true) throw new SrtError(`another pull of this server listens on UDP port ${port}`);
      if (known?.isFor(target) === false) await known.close();
      else {
        const awaited = known ?? this.#listen(target);
        if (awaited !== undefined) return this.#keep(await awaited.next(signal));
        await pause(AGAIN_MS, signal);
      }
    }
  }

  /** @returns undefined while libsrt has not let go of the port since it was closed */
  #listen(target: Omit<SrtTarget, 'signal'>): AwaitedCaller | undefined {
    const { port } = target;
    const permits = (address: string): boolean => this.#guard.permits(address, 'udp');
    this.#runtime ??= SrtRuntime.open(this.#log);
    try {
      const made = new AwaitedCaller(this.#runtime, { ...target, permits, log: this.#log }, () => {
        if (this.#awaited.get(port) !== made) return;
        this.#awaited.delete(port);
        this.#closedAt.set(port, performance.now());
      });
      this.#closedAt.delete(port);
      this.#awaited.set(port, made);
      return made;
    } catch (error) {
      if (performance.now() - (this.#closedAt.get(port) ?? -Infinity) < LEAVING_MS) return undefined;
      throw error;
    }
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
    await Promise.all([...this.#awaited.values()].map((awaited) => awaited.close()));
    await this.#runtime?.close();
  }
}
