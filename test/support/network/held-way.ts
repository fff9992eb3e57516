import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A way to a port that clients can take before it leads there: a program that is to connect at a certain moment has been
 * started by then.
 */
export class HeldWay {
  readonly #target: number;
  readonly #held = new Set<Socket>();
  readonly #server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    this.#held.add(socket);
  });

  private constructor(target: number) {
    this.#target = target;
  }

  static async open(target: number): Promise<HeldWay> {
    const way = new HeldWay(target);
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many clients wait. */
  get held(): number {
    return this.#held.size;
  }

  /** Lets those who wait through, and nobody after them. */
  release(): void {
    this.#server.close();
    for (const socket of this.#held) {
      const target = connect(this.#target, '127.0.0.1');
      target.on('error', () => target.destroy());
      socket.pipe(target).pipe(socket);
      socket.once('close', () => target.destroy());
      target.once('close', () => socket.destroy());
    }
    this.#held.clear();
  }
}
