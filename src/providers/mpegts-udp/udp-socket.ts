import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { UdpPort } from './port-map.ts';

/** Room for a key frame, which arrives at once; the system may grant less (net.core.rmem_max). */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

/**
 * Binds a UDP port.
 * @param host an address, `*` for every IPv4 address or `::` for every IPv6 address of the machine
 * @throws the system's error
 */
export async function bindUdp(host: string, port: number): Promise<Socket> {
  return bound(host === '*' ? '0.0.0.0' : host, port, false);
}

/**
 * Binds a port of a multicast group and joins the group.
 * @param hosts as of `bindUdp`: joins on the networks of these addresses
 * @throws the system's error, or that none of the hosts is of the group's family
 */
export async function joinGroup(hosts: readonly string[], { group, port }: Required<UdpPort>): Promise<Socket> {
  const interfaces = interfacesOf(hosts, isIPv6(group));
  if (interfaces.length === 0) throw new Error(`no address of Server/IP can join ${group}`);
  // `reuseAddr` lets other programs listen to the group; a socket bound to it receives nothing else
  const socket = await bound(group, port, true);
  let error: unknown;
  let joined = 0;
  for (const one of interfaces) {
    try {
      socket.addMembership(group, one);
      joined++;
    } catch (cause) {
      error = cause;
    }
  }
  if (joined > 0) return socket;
  socket.close();
  throw error;
}

async function bound(address: string, port: number, reuseAddr: boolean): Promise<Socket> {
  const type = isIPv6(address) ? 'udp6' : 'udp4';
  const socket = createSocket({ type, reuseAddr, ipv6Only: type === 'udp6', recvBufferSize: RECEIVE_BUFFER_BYTES });
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, 'listening');
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** Interfaces as `addMembership` names them: IPv4 by an address, IPv6 by a name. */
function interfacesOf(hosts: readonly string[], ofIpv6: boolean): string[] {
  const own = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family }) => (family === 'IPv6') === ofIpv6)
      .map(({ address }) => ({ address, how: ofIpv6 ? `::%${name}` : address })),
  );
  const every = ofIpv6 ? '::' : '*';
  const wanted = own.filter(
    ({ address }) => hosts.includes(every) || (!ofIpv6 && hosts.includes('0.0.0.0')) || hosts.includes(address),
  );
  return [...new Set(wanted.map(({ how }) => how))];
}
