import { connect, type Socket } from 'node:net';
import type { Connection } from '../../core/source.ts';
import { Watchdog } from '../../core/watchdog.ts';
import { PullError } from './error.ts';
import type { PullGuard } from './guard.ts';

const CONNECT_MS = 1500;
const MAX_ADDRESSES = 4;

/**
 * Connects to a host as far as that is allowed: to an address that was checked, whatever its name says by now.
 * @throws PullError when it is not, or none of its addresses answers
 */
export async function dial(guard: PullGuard, host: string, port: number): Promise<Socket> {
  const failures: string[] = [];
  for (const address of (await guard.addresses(host, port)).slice(0, MAX_ADDRESSES)) {
    try {
      return await open(address, port);
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  throw new PullError(failures.join('; '));
}

/** What the management API shows of a connection that this server has made. */
export function connectionOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): Connection {
  return { transport: 'TCP', protocol: 'TCP', localAddress, localPort, remoteAddress, remotePort };
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const fail = (error: Error): void => {
      late.close();
      socket.destroy();
      reject(error);
    };
    const late = new Watchdog(CONNECT_MS, () => fail(new Error(`${host}:${port} does not answer`)));
    socket.once('error', fail);
    socket.once('connect', () => {
      late.close();
      socket.off('error', fail);
      resolve(socket);
    });
  });
}
