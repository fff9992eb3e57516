import { connect, createServer, type Server, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

/** Passes connections on from the same port of another address, until that is closed: then the machine refuses them. */
export class Forwarder {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(to: string, port: number) {
    this.#server = createServer((socket) => {
      const target = connect(port, to);
      for (const [one, other] of [
        [socket, target],
        [target, socket],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => one.destroy()).once('close', () => void (this.#sockets.delete(one), other.destroy()));
      }
    });
  }

  static async open(
    t: Pick<ExecutionContext, 'teardown'>,
    { from, to, port }: { readonly from: string; readonly to: string; readonly port: number },
  ): Promise<Forwarder> {
    const forwarder = new Forwarder(to, port);
    await new Promise<void>((resolve, reject) => {
      forwarder.#server.once('error', reject).listen(port, from, resolve);
    });
    t.teardown(() => forwarder.close());
    return forwarder;
  }

  /** Idempotent. */
  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
