import type { SrtAddress } from './address.ts';
import type { PortGuard, Sender } from './guard/port-guard.ts';
import { ERROR, EVENT, INVALID, OPTION } from './library.ts';
import { MessageReader, type MessageHandlers } from './message-reader.ts';
import type { SrtRuntime, Watcher } from './runtime.ts';
import type { SrtStatistics } from './statistics.ts';

export interface SrtHandlers extends MessageHandlers {
  /** Totals since the connection began, about once a second. */
  readonly counted?: (statistics: SrtStatistics) => void;
  /** There is room again after a `send` that returned false. */
  readonly writable?: () => void;
  /** The peer has gone; data that it sent before is still delivered. */
  readonly leaving?: () => void;
  /**
   * Called once, when the peer has gone or the connection failed, after delivery of what it sent before; not after
   * `close()` or `finish()`.
   */
  readonly close: (reason: string) => void;
}

/** No limit of its own for a message: the negotiated latency applies. */
const NO_TTL = -1;
const IN_ORDER = 1;
/** Headers of UDP in IPv6, and of SRT. */
const HEADER_BYTES = 48 + 16;
/** Errors of a broken connection. `close` reports them as soon as the runtime notices. */
const BROKEN: ReadonlySet<number> = new Set([ERROR.connectionLost, ERROR.noConnection, ERROR.invalidSocket]);
/** Interval of checks while a connection ends. */
const END_STEP_MS = 20;
/** Tolerance for clocks and threads, added to the latency. */
const END_MARGIN_MS = 100;
/**
 * libsrt announces the end of a connection once. A caller that does not know yet that it was accepted misses that, and would
 * believe for seconds that it is connected.
 */
const SETTLED_MS = 200;
/** Limit whatever the latency: the stream name stays in use for as long. */
const MAX_END_MS = 5000;

const GONE = 'the connection is gone';

/** Details of a new connection that its port knows. */
export interface SrtEnds {
  readonly peer: SrtAddress;
  readonly local: SrtAddress | undefined;
  readonly streamId: string;
  /** Sequence number of the first message to it. */
  readonly first: number;
  readonly guard: PortGuard | undefined;
}

/** One accepted caller. Until `read()`, libsrt buffers what it sends, within its limits. */
export class SrtConnection implements Watcher, Sender {
  readonly peer: SrtAddress;
  /** Undefined where it is not known. */
  readonly local: SrtAddress | undefined;
  /** As the caller gave it. */
  readonly streamId: string;
  readonly socket: number;
  readonly first: number;
  sent = 0;
  readonly #runtime: SrtRuntime;
  readonly #guard: PortGuard | undefined;
  readonly #reader: MessageReader;
  readonly #settled = performance.now() + SETTLED_MS;
  #handlers: SrtHandlers | undefined;
  #events: number = EVENT.error;
  #isAdded = false;
  #ending: NodeJS.Timeout | undefined;
  #onFinished: (() => void) | undefined;
  #statistics: SrtStatistics | undefined;
  #closed = false;

  /** @throws SrtError when the caller has gone already */
  constructor(runtime: SrtRuntime, socket: number, ends: SrtEnds) {
    this.#runtime = runtime;
    this.socket = socket;
    this.#reader = new MessageReader(runtime, socket);
    this.peer = ends.peer;
    this.local = ends.local;
    this.streamId = ends.streamId;
    this.first = ends.first;
    this.#guard = ends.guard;
    runtime.watch(socket, this.#events, this);
    runtime.counting.add(socket, (statistics) => {
      this.#statistics = statistics;
      this.#handlers?.counted?.(statistics);
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Must be set in the turn in which the connection came. */
  set handlers(handlers: SrtHandlers) {
    this.#handlers = handlers;
  }

  /** Starts to receive. */
  read(): void {
    this.#want(EVENT.in, true);
  }

  /** The longest message that can be sent, by the limits of both sides. */
  get maxMessageBytes(): number {
    const packet = this.#option(OPTION.mss) - HEADER_BYTES;
    const most = this.#option(OPTION.payloadSize);
    return most > 0 ? Math.min(most, packet) : packet;
  }

  /**
   * Sends a message of at most `maxMessageBytes`; a longer one ends the connection.
   * @returns false when there was no room and nothing was sent: `writable` is called once there is room
   */
  send(message: Buffer): boolean {
    if (this.#closed) return true;
    if (!this.#isAdded) this.#add();
    const { library } = this.#runtime;
    if (library.send(this.socket, message, message.length, NO_TTL, IN_ORDER) !== INVALID) {
      this.sent++;
      return true;
    }
    const error = library.lastError();
    if (error === ERROR.asyncSend) {
      this.#want(EVENT.out, true);
      return false;
    }
    if (!BROKEN.has(error))
      this.#end(`it does not accept a message of ${message.length} bytes: ${library.lastErrorText()}`);
    return true;
  }

  /**
   * Closes the connection once the peer has received and played everything sent so far. Nothing can be sent after this, and
   * no handler is called. `close()` cuts it short.
   * @param done called when it is closed
   */
  finish(done: () => void): void {
    if (this.#closed) return done();
    this.#handlers = undefined;
    this.#onFinished = done;
    this.#want(EVENT.in | EVENT.out, false);
    const latency = this.#latency(OPTION.sendLatency);
    const start = performance.now();
    let emptySince: number | undefined;
    this.#endWhen((now) => {
      if (this.#unsent() > 0) emptySince = undefined;
      else emptySince ??= now;
      return now - (emptySince ?? now) > latency || now - start > latency + MAX_END_MS;
    });
  }

  /**
   * Idempotent.
   * @param counted called once, soon, with the final totals: up to a second old when the peer has gone
   */
  close(counted?: (statistics: SrtStatistics | undefined) => void): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#guard?.delete(this);
    clearInterval(this.#ending);
    this.#reader.close();
    this.#runtime.release(this.socket, {
      notBefore: this.#settled,
      counted: counted && ((statistics) => counted(statistics ?? this.#statistics)),
    });
    this.#onFinished?.();
  }

  ready(events: number): void {
    if ((events & EVENT.in) !== 0 && !this.#receive()) return this.#lost();
    if ((events & EVENT.error) !== 0) return this.#lost();
    if ((events & EVENT.out) !== 0 && !this.#closed) {
      this.#want(EVENT.out, false);
      this.#handlers?.writable?.();
    }
  }

  fail(error: unknown): void {
    this.#end(`it failed: ${(error as Error).message}`);
  }

  #add(): void {
    this.#isAdded = true;
    this.#guard?.add(this);
  }

  /** @returns false when the peer has gone, and there is nothing to read right now */
  #receive(): boolean {
    return this.#handlers === undefined || this.#reader.read(this.#handlers);
  }

  /** The peer has gone. libsrt still delivers what it sent, each message at its time. */
  #lost(): void {
    if (this.#closed) return;
    if (this.#onFinished !== undefined || (this.#events & EVENT.in) === 0) return this.#end(GONE);
    this.#runtime.unwatch(this.socket);
    this.#handlers?.leaving?.();
    const end = performance.now() + this.#latency(OPTION.receiveLatency);
    this.#endWhen((now) => {
      try {
        this.#receive();
      } catch (error) {
        this.fail(error);
      }
      return now > end;
    });
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.#handlers?.close(reason);
    this.close();
  }

  #endWhen(isOver: (now: number) => boolean): void {
    if (this.#closed) return;
    clearInterval(this.#ending);
    this.#ending = setInterval(() => {
      if (isOver(performance.now())) this.#end(GONE);
    }, END_STEP_MS);
  }

  /** Negotiated latency with tolerance, in milliseconds. */
  #latency(option: number): number {
    return Math.min(this.#option(option), MAX_END_MS) + END_MARGIN_MS;
  }

  /** Value of a numeric option; 0 when the connection has gone. */
  #option(option: number): number {
    const value = Buffer.alloc(4);
    this.#runtime.library.getOption(this.socket, option, value, new Int32Array([value.length]));
    return value.readInt32LE();
  }

  /** Messages that the peer has not acknowledged. */
  #unsent(): number {
    const blocks = new Int32Array(1);
    const isKnown = this.#runtime.library.sendBuffer(this.socket, blocks, new Int32Array(1)) !== INVALID;
    return isKnown ? (blocks[0] ?? 0) : 0;
  }

  #want(event: number, wanted: boolean): void {
    const events = wanted ? this.#events | event : this.#events & ~event;
    if (events === this.#events || this.#closed) return;
    this.#events = events;
    if (!this.#runtime.rewatch(this.socket, events)) this.#lost();
  }
}
