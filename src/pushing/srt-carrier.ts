import { PACKET_BYTES } from '../containers/mpegts/stream-types.ts';
import { Watchdog } from '../lib/watchdog.ts';
import type { SrtCalls } from '../protocols/srt/calls.ts';
import type { SrtConnection } from '../protocols/srt/connection.ts';
import { SrtError } from '../protocols/srt/error.ts';
import { SrtLink } from '../protocols/srt/link.ts';
import { readSrtQuery } from '../protocols/srt/query.ts';
import type { Destination } from './destination.ts';
import { PushError } from './error.ts';
import type { SinkOptions } from './sink.ts';
import type { Carrier } from './ts-sink.ts';

/** Seven transport packets: the default payload of SRT's live mode. */
const MESSAGE_BYTES = 7 * PACKET_BYTES;

/** Carries MPEG-TS over SRT. */
export function srtCarrier(calls: SrtCalls) {
  /** @throws PushError, or the guard's */
  return async ({ host, port, url }: Destination, options: SinkOptions): Promise<Carrier> => {
    try {
      const { signal } = options;
      return new SrtCarrier(await calls.call({ ...readSrtQuery(url), host, port, signal }), options);
    } catch (error) {
      throw error instanceof SrtError ? new PushError(error.message) : error;
    }
  };
}

class SrtCarrier implements Carrier {
  readonly takesBursts = true;
  readonly link = new SrtLink('sent');
  readonly #connection: SrtConnection;
  readonly #options: SinkOptions;
  readonly #messageBytes: number;
  #rest: Buffer[] = [];
  #stall: Watchdog | undefined;
  #sentBytes = 0;

  constructor(connection: SrtConnection, options: SinkOptions) {
    this.#connection = connection;
    this.#options = options;
    const most = connection.maxMessageBytes;
    this.#messageBytes = Math.max(PACKET_BYTES, Math.min(MESSAGE_BYTES, most - (most % PACKET_BYTES)));
    connection.handlers = {
      counted: (statistics) => this.link.counted(statistics),
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
    this.#connection.finish(() => {});
  }

  close(): void {
    this.#stall?.close();
    this.#connection.close();
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
