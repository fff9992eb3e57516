import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

const CHANNEL = '+switch-master';

/** A sentinel that knows one master on loopback, and decides when it tells of the next. */
export class FakeSentinel {
  readonly #server: Server;
  readonly #listeners = new Set<Socket>();
  #master: number;
  #next: number | undefined;

  private constructor(server: Server, master: number) {
    this.#server = server;
    this.#master = master;
    server.on('connection', (socket) => this.#serve(socket));
  }

  /** @param master port of the master */
  static async listen(t: Pick<ExecutionContext, 'teardown'>, master: number): Promise<FakeSentinel> {
    const server = createServer();
    const sentinel = new FakeSentinel(server, master);
    t.teardown(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return sentinel;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many connections want to be told of new masters. */
  get listening(): number {
    return this.#listeners.size;
  }

  /** Whoever asks for the master is answered behind the message that there is a new one. */
  tellWhenAsked(next: number): void {
    this.#next = next;
  }

  #serve(socket: Socket): void {
    socket.on('error', () => {});
    socket.on('close', () => this.#listeners.delete(socket));
    socket.on('data', (data) => {
      // its clients send each command at once, as an array of strings
      for (const command of data
        .toString()
        .split(/^\*\d+\r\n/m)
        .filter((text) => text !== '')) {
        this.#answer(
          socket,
          command
            .split('\r\n')
            .filter((_, i) => i % 2 === 1)
            .map((word) => word.toLowerCase()),
        );
      }
    });
  }

  #answer(socket: Socket, [name, what]: readonly string[]): void {
    if (name === 'subscribe') {
      this.#listeners.add(socket);
      socket.write(`*3\r\n${bulk('subscribe')}${bulk(CHANNEL)}:1\r\n`);
    } else if (what === 'get-master-addr-by-name') {
      this.#tell();
      // they have heard it by then
      setTimeout(() => socket.write(`*2\r\n${bulk('127.0.0.1')}${bulk(String(this.#master))}`), 100);
    } else {
      socket.write(name === 'sentinel' ? '*0\r\n' : '+OK\r\n');
    }
  }

  #tell(): void {
    if (this.#next === undefined) return;
    for (const listener of this.#listeners) {
      listener.write(
        `*3\r\n${bulk('message')}${bulk(CHANNEL)}${bulk(`mymaster 127.0.0.1 ${this.#master} 127.0.0.1 ${this.#next}`)}`,
      );
    }
    this.#master = this.#next;
    this.#next = undefined;
  }
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}
