import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

/** A way to a port that can be cut, or swallow everything. */
export class TcpProxy {
  readonly #sockets = new Set<Socket>();
  readonly #target: number;
  #mode: 'through' | 'blackhole' | 'refuse' = 'through';
  #server = createServer((socket) => this.#take(socket));

  private constructor(target: number) {
    this.#target = target;
  }

  /** @param at where it listens; on a free port of loopback unless given */
  static async open(
    t: Pick<ExecutionContext, 'teardown'>,
    target: number,
    { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number } = {},
  ): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(port, host, resolve));
    t.teardown(() => {
      proxy.cut();
      proxy.#server.close();
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes connections and bytes, and never answers. */
  blackhole(): void {
    this.#mode = 'blackhole';
    for (const socket of this.#sockets) socket.unpipe();
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends what is open; refuses what comes. */
  cut(): void {
    this.#mode = 'refuse';
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Passes again what comes from now on. */
  heal(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#mode = 'through';
  }

  #take(socket: Socket): void {
    if (this.#mode === 'refuse') return void socket.destroy();
    this.#hold(socket);
    if (this.#mode === 'blackhole') return void socket.resume();
    const target = connect(this.#target, '127.0.0.1');
    this.#hold(target);
    socket.pipe(target);
    target.pipe(socket);
    socket.once('close', () => target.destroy());
    target.once('close', () => socket.destroy());
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
