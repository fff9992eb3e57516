import { connect, type Socket } from 'node:net';
import type { Connection } from '../../core/source.ts';
import { hostInUrl } from '../../lib/address.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { OutboundGuard } from './guard.ts';

const CONNECT_MS = 1500;
const MAX_ADDRESSES = 4;

export interface DialOptions {
  /** Time for each address to accept, in milliseconds; 1.5 s where absent. A handshake of TLS is not part of it. */
  readonly connectMs?: number | undefined;
  /** Ends the attempt, and has no effect on a connection that was made. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects to an address of a host that the guard has checked, whatever the name resolves to later.
 * @throws the guard's error when no address is allowed, none answers, or the signal aborts
 */
export async function dial(
  guard: OutboundGuard,
  host: string,
  port: number,
  { connectMs = CONNECT_MS, signal }: DialOptions = {},
): Promise<Socket> {
  const failures: string[] = [];
  for (const address of (await guard.addresses(host, port, 'tcp', signal)).slice(0, MAX_ADDRESSES)) {
    try {
      return await open(address, port, connectMs, signal);
    } catch (error) {
      if (signal?.aborted === true) throw guard.unwanted();
      failures.push(failureText(address, port, error as NodeJS.ErrnoException));
    }
  }
  throw guard.error(failures.join('; '));
}

/** Addresses of an outgoing connection, as the management API shows them. */
export function connectionOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): Connection {
  return { transport: 'TCP', protocol: 'TCP', localAddress, localPort, remoteAddress, remotePort };
}

const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'closed the connection',
  ETIMEDOUT: 'did not answer in time',
  EHOSTUNREACH: 'cannot be reached: no route to the host',
  ENETUNREACH: 'cannot be reached: no route to the network',
};

function failureText(address: string, port: number, { code = '' }: NodeJS.ErrnoException): string {
  return `${hostInUrl(address)}:${port} ${FAILURES[code] ?? `cannot be reached: ${code}`}`;
}

function open(host: string, port: number, connectMs: number, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true, keepAlive: true });
    const onAbort = (): void => fail(new Error('aborted'));
    const over = (): void => {
      late.close();
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (error: Error): void => {
      over();
      socket.destroy();
      reject(error);
    };
    const late = new Watchdog(connectMs, () => fail(Object.assign(new Error(), { code: 'ETIMEDOUT' })));
    socket.once('error', fail);
    socket.once('connect', () => {
      over();
      socket.off('error', fail);
      resolve(socket);
    });
    signal?.addEventListener('abort', onAbort);
  });
}
