import { PACKET_BYTES } from '../containers/mpegts/stream-types.ts';
import { Watchdog } from '../lib/watchdog.ts';
import type { Logger } from '../log/log.ts';
import type { OutboundGuard } from '../protocols/outbound/guard.ts';
import { callSrt } from '../protocols/srt/caller.ts';
import type { SrtConnection } from '../protocols/srt/connection.ts';
import { SrtError } from '../protocols/srt/error.ts';
import { SrtRuntime } from '../protocols/srt/runtime.ts';
import type { Destination } from './destination.ts';
import { PushError } from './error.ts';
import type { SinkOptions } from './sink.ts';
import { readSrtQuery } from './srt-options.ts';
import type { Carrier } from './ts-sink.ts';

/** Seven transport packets: the default payload of SRT's live mode. */
const MESSAGE_BYTES = 7 * PACKET_BYTES;

/** Carries MPEG-TS over SRT to destinations that the guard allows. libsrt runs from the first call on. */
export class SrtCarriers {
  readonly #guard: OutboundGuard;
  readonly #log: Logger;
  readonly #connections = new Set<SrtConnection>();
  #runtime: SrtRuntime | undefined;

  constructor(guard: OutboundGuard, log: Logger) {
    this.#guard = guard;
    this.#log = log;
  }

  /** @throws PushError */
  readonly open = async ({ host, port, url }: Destination, options: SinkOptions): Promise<Carrier> => {
    const query = readSrtQuery(url);
    const [address = host] = await this.#guard.addresses(host, port, 'udp');
    try {
      this.#runtime ??= SrtRuntime.open(this.#log);
      const connection = await callSrt(this.#runtime, { ...query, address, port, signal: options.signal });
      this.#connections.add(connection);
      return new SrtCarrier(connection, options, () => this.#connections.delete(connection));
    } catch (error) {
      if (error instanceof SrtError) throw new PushError(error.message);
      throw error;
    }
  };

  /** Closes the remaining connections, and libsrt. Idempotent. */
  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    await this.#runtime?.close();
  }
}

class SrtCarrier implements Carrier {
  readonly takesBursts = true;
  readonly #connection: SrtConnection;
  readonly #options: SinkOptions;
  readonly #onClose: () => void;
  readonly #messageBytes: number;
  #rest: Buffer[] = [];
  #stall: Watchdog | undefined;
  #sentBytes = 0;

  constructor(connection: SrtConnection, options: SinkOptions, onClose: () => void) {
    this.#connection = connection;
    this.#options = options;
    this.#onClose = onClose;
    const most = connection.maxMessageBytes;
    this.#messageBytes = Math.max(PACKET_BYTES, Math.min(MESSAGE_BYTES, most - (most % PACKET_BYTES)));
    connection.handlers = {
      data: () => {},
      writable: () => this.#resume(),
      close: (reason) => this.#fail(reason),
    };
    connection.read();
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  send(packets: Buffer): boolean {
    this.#rest.push(packets);
    return this.#stall === undefined ? this.#flush() : false;
  }

  finish(): void {
    this.#stall?.close();
    this.#connection.finish(this.#onClose);
  }

  close(): void {
    this.#stall?.close();
    this.#connection.close();
    this.#onClose();
  }

  /** @returns false when there is not room for all of it */
  #flush(): boolean {
    for (let packets = this.#rest.shift(); packets !== undefined; packets = this.#rest.shift()) {
      for (let at = 0; at < packets.length; at += this.#messageBytes) {
        const message = packets.subarray(at, at + this.#messageBytes);
        if (!this.#connection.send(message)) {
          this.#rest.unshift(packets.subarray(at));
          const { sendMs } = this.#options;
          this.#stall = new Watchdog(sendMs, () => this.#fail(`the other side took nothing for ${sendMs} ms`));
          return false;
        }
        this.#sentBytes += message.length;
      }
    }
    return true;
  }

  #resume(): void {
    if (this.#stall === undefined) return;
    this.#stall.close();
    this.#stall = undefined;
    if (this.#flush()) this.#options.writable();
  }

  #fail(reason: string): void {
    this.close();
    this.#options.failed(reason);
  }
}
