import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import type { Message } from './signalling-client.ts';
import type { Throttle } from '../network/throttle.ts';

/** Signalling of a server that looks as if its media came from behind a narrow link. */
export class NarrowSignalling {
  /** What the server has told. */
  readonly notifications: Message[] = [];
  readonly #server = new WebSocketServer({ host: '127.0.0.1', port: 0 });

  private constructor(port: number, throttle: Throttle) {
    this.#server.on('connection', (player, { url }) => {
      const server = new WebSocket(`ws://127.0.0.1:${port}${url}`);
      const opened = once(server, 'open');
      player.on('message', (data) => void opened.then(() => server.send(data.toString())));
      player.on('close', () => server.close());
      server.on('close', () => player.close());
      server.on('message', (data) => {
        const text = data.toString();
        const message = JSON.parse(text) as Message;
        if (message.command === 'notification') this.notifications.push(message);
        player.send(throttle.rewrite(text));
      });
    });
  }

  static async open(port: number, throttle: Throttle): Promise<NarrowSignalling> {
    const signalling = new NarrowSignalling(port, throttle);
    await once(signalling.#server, 'listening');
    return signalling;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The renditions that have been told to be sent, in order. */
  get renditions(): (string | undefined)[] {
    return this.notifications
      .filter(({ type }) => type === 'rendition_changed')
      .map(({ message }) => message?.rendition_name);
  }

  close(): void {
    this.#server.close();
    for (const client of this.#server.clients) client.terminate();
  }
}
