import { connect, type Socket } from 'node:net';
import type { Connection } from '../../core/stream.ts';
import { parseOvtUrl } from '../../protocols/ovt/url.ts';
import { OvtClient } from '../ovt/client.ts';
import { PullError, shownUrl } from './error.ts';
import type { PullGuard } from './guard.ts';
import type { OpenSource } from './source.ts';

const CONNECT_MS = 1500;

/** Pulls from OVT origins, as far as they may be reached. */
export function ovtSource(guard: PullGuard): OpenSource {
  return async (target, options) => {
    const url = parseOvtUrl(target);
    if (url === undefined) throw new PullError(`not an OVT URL: ${shownUrl(target)}`);
    const socket = await dial(await guard.addresses(url.host, url.port), url.port);
    const client = await OvtClient.connect({ stream: socket, target }, options);
    const connection = connectionOf(socket);
    return { connection, play: (sink) => client.play(sink), close: () => client.close() };
  };
}

/** @throws PullError when none of the addresses answers */
async function dial(addresses: readonly string[], port: number): Promise<Socket> {
  const failures: string[] = [];
  for (const address of addresses.slice(0, 4)) {
    try {
      return await open(address, port);
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  throw new PullError(failures.join('; '));
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const fail = (error: Error): void => {
      clearTimeout(late);
      socket.destroy();
      reject(error);
    };
    const late = setTimeout(() => fail(new Error(`${host}:${port} does not answer`)), CONNECT_MS);
    socket.once('error', fail);
    socket.once('connect', () => {
      clearTimeout(late);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

function connectionOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): Connection {
  return { transport: 'TCP', protocol: 'TCP', localAddress, localPort, remoteAddress, remotePort };
}
