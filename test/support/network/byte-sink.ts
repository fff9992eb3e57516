import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

/** A TCP server that takes whatever comes, and counts it. Ends with the test. */
export class ByteSink {
  bytes = 0;
  connections = 0;
  /** Most connections that there were at once. */
  most = 0;
  readonly #server = createServer((socket) => {
    this.connections += 1;
    this.most = Math.max(this.most, this.connections);
    socket.on('error', () => {}).on('close', () => (this.connections -= 1));
    socket.on('data', ({ length }) => (this.bytes += length));
  });

  static async open(t: Pick<ExecutionContext, 'teardown'>): Promise<ByteSink> {
    const sink = new ByteSink();
    sink.#server.listen(0, '127.0.0.1');
    await once(sink.#server, 'listening');
    t.teardown(() => sink.#server.close());
    return sink;
  }

  /** As a push is sent there. */
  get url(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
}
