import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6 } from 'node:net';
import type { IceSocket } from './addresses.ts';

/**
 * Keeps the ports of a media worker from other programs until the worker opens them. Connections are accepted and closed,
 * datagrams are dropped.
 * @returns release; idempotent
 * @throws the system's error when a port cannot be opened
 */
export async function holdPorts(sockets: readonly IceSocket[]): Promise<() => void> {
  const holds: Hold[] = [];
  const release = (): void => holds.splice(0).forEach((hold) => hold.close());
  try {
    for (const { protocol, ip, port } of sockets) {
      // any free port
      if (port === 0) continue;
      const hold = protocol === 'udp' ? udpHold(ip, port) : tcpHold(ip, port);
      await once(hold, 'listening');
      // the worker reports the port when it opens it
      hold.on('error', () => undefined);
      holds.push(hold);
    }
  } catch (error) {
    release();
    throw error;
  }
  return release;
}

type Hold = ReturnType<typeof udpHold> | ReturnType<typeof tcpHold>;

function udpHold(address: string, port: number) {
  const ipv6Only = isIPv6(address);
  return createSocket({ type: ipv6Only ? 'udp6' : 'udp4', ipv6Only }).bind({ address, port, exclusive: true });
}

function tcpHold(host: string, port: number) {
  return createServer((socket) => socket.destroy()).listen({ host, port, ipv6Only: isIPv6(host), exclusive: true });
}
