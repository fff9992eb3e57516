import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { ListenError } from './listen-error.ts';

export interface BindUdpOptions {
  /** An IP address of this machine, or that of all. */
  readonly address: string;
  readonly port: number;
  /** With `::`: every IPv4 address as well. */
  readonly ipv4Too?: boolean;
  readonly sendBufferSize?: number;
  readonly recvBufferSize?: number;
}

/** A bound UDP socket without a handler of errors, which sends to IP addresses alone. @throws ListenError */
export function bindUdp({ address, port, ipv4Too = false, ...buffers }: BindUdpOptions): Promise<Socket> {
  const ipv6 = isIPv6(address);
  return new Promise((resolve, reject) => {
    const socket = createSocket({
      type: ipv6 ? 'udp6' : 'udp4',
      ipv6Only: ipv6 && !ipv4Too,
      ...buffers,
      // peers are known by their addresses
      lookup: (host, _, done) => done(null, host, ipv6 ? 6 : 4),
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close();
      reject(new ListenError(error.code ?? '', 'bind', address, port));
    });
    // with such a lookup it may be bound before this returns
    socket.bind(port, address, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}
