import type { SrtAddress } from './address.ts';
import type { PortGuard, Sender } from './guard/port-guard.ts';
import { ERROR, EVENT, INVALID, OPTION } from './library.ts';
import { MessageReader, type MessageHandlers } from './message-reader.ts';
import type { SrtRuntime, Watcher } from './runtime.ts';
import type { SrtStatistics } from './statistics.ts';

export interface SrtHandlers extends MessageHandlers {
  /** What was counted since the beginning, about once a second. */
  readonly counted?: (statistics: SrtStatistics) => void;
  /** There is room again behind a `send` that answered false. */
  readonly writable?: () => void;
  /** The other side has gone; what it sent before is still handed over. */
  readonly leaving?: () => void;
  /**
   * Called once, when the other side has gone or the connection failed, and what it sent before was handed over; not
   * after `close()` or `finish()`.
   */
  readonly close: (reason: string) => void;
}

/** Nothing of a message goes stale before the latency that was agreed on tells. */
const NO_TTL = -1;
const IN_ORDER = 1;
/** Of UDP in IPv6, and of SRT, in front of a message. */
const HEADER_BYTES = 48 + 16;
/** Errors of a connection that is broken, which `close` tells of as soon as the runtime notices. */
const BROKEN: ReadonlySet<number> = new Set([ERROR.connectionLost, ERROR.noConnection, ERROR.invalidSocket]);
/** How often one that ends is looked at. */
const END_STEP_MS = 20;
/** What clocks and threads may be off by, beyond the latency. */
const END_MARGIN_MS = 100;
/**
 * What libsrt sends at an end it sends once, and a caller that has not seen yet that it is in overlooks it: it would believe
 * for seconds that it is connected.
 */
const SETTLED_MS = 200;
/** However long the latency is: the name of a stream is taken as long. */
const MAX_END_MS = 5000;

const GONE = 'the connection is gone';

/** What a port knows of one who called. */
export interface SrtEnds {
  readonly peer: SrtAddress;
  readonly local: SrtAddress | undefined;
  readonly streamId: string;
  /** Sequence number of the first message to it. */
  readonly first: number;
  readonly guard: PortGuard | undefined;
}

/** One caller, from being accepted on. Until `read()` what it sends waits in libsrt, within the limits of its buffer. */
export class SrtConnection implements Watcher, Sender {
  readonly peer: SrtAddress;
  /** This side; undefined where it is not known. */
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
  /** Runs while it ends. */
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

  /** To be set in the turn in which the connection came. */
  set handlers(handlers: SrtHandlers) {
    this.#handlers = handlers;
  }

  /** Takes what the caller sends, from now on. */
  read(): void {
    this.#want(EVENT.in, true);
  }

  /** The longest message that can be sent: both sides have a say in it. */
  get maxMessageBytes(): number {
    const packet = this.#option(OPTION.mss) - HEADER_BYTES;
    const most = this.#option(OPTION.payloadSize);
    return most > 0 ? Math.min(most, packet) : packet;
  }

  /**
   * Sends a message of at most `maxMessageBytes`; a longer one ends the connection.
   * @returns false when there is no room for it: nothing was sent, `writable` tells when there is
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
   * Ends it when the other side has what was sent before, and played it: nothing is sent after that, and no handler is
   * called. A `close()` cuts it short.
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
   * @param told of what was counted, up to a second ago when the other side has gone; soon, and once
   */
  close(told?: (statistics: SrtStatistics | undefined) => void): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#guard?.delete(this);
    clearInterval(this.#ending);
    this.#reader.close();
    this.#runtime.release(this.socket, {
      notBefore: this.#settled,
      told: told && ((statistics) => told(statistics ?? this.#statistics)),
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

  /** @returns false when the other side has gone, and there is nothing to be had right now */
  #receive(): boolean {
    return this.#handlers === undefined || this.#reader.read(this.#handlers);
  }

  /** The other side has gone: what it sent is still given out by libsrt, each message when its time has come. */
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

  /** In milliseconds, as it was agreed on, with what is beyond it. */
  #latency(option: number): number {
    return Math.min(this.#option(option), MAX_END_MS) + END_MARGIN_MS;
  }

  /** Of a number; 0 when the connection has gone. */
  #option(option: number): number {
    const value = Buffer.alloc(4);
    this.#runtime.library.getOption(this.socket, option, value, new Int32Array([value.length]));
    return value.readInt32LE();
  }

  /** Messages that the other side does not have yet. */
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
