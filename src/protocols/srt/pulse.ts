import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Logger } from '../../log/log.ts';
import { reachableHost } from './address.ts';

const EVERY_MS = 100;
/** Data header for socket 0, as of handshakes: libsrt sees that it is none, answers nothing, and looks at its timers. */
const PACKET = Buffer.alloc(16);

/**
 * Makes libsrt look at the timers of a port's connections. It does so after packets for a connection, and after 10 ms without
 * any packet, but not while packets for no connection keep coming.
 */
export class Pulse {
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  #failed = false;

  /** @param host as of SrtListenOptions */
  constructor(host: string, port: number, log: Logger) {
    const target = reachableHost(host);
    const onResult = (error: Error | null): void => {
      if (error !== null && !this.#failed)
        log.warn({ err: error }, 'this server cannot reach its own SRT port: stray packets may delay it');
      this.#failed = error !== null;
    };
    this.#socket = createSocket(isIPv6(target) ? 'udp6' : 'udp4').unref();
    this.#socket.on('error', onResult);
    this.#timer = setInterval(() => this.#socket.send(PACKET, port, target, onResult), EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#socket.close();
  }
}
