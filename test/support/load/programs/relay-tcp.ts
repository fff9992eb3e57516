import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { serve } from '../program.ts';

const commands = {
  /** Passes connections on to a port of loopback, byte by byte. @returns its own port */
  async open(target: number): Promise<number> {
    const server = createServer((socket) => {
      const other = connect(target, '127.0.0.1');
      for (const [from, to] of [
        [socket, other],
        [other, socket],
      ] as const)
        from
          .on('error', () => from.destroy())
          .once('close', () => to.destroy())
          .pipe(to);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  },
};

/** A bare TCP relay: reads and writes, and nothing else. */
export type TcpRelayCommands = typeof commands;

serve(commands);
