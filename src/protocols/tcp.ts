import { createServer, isIP, isIPv6, type AddressInfo, type BlockList, type Server, type Socket } from 'node:net';
import { canonicalAddress } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import { isProxyHeader, parseProxyHeader, type Peer, type ProxyHeader } from './proxy-protocol.ts';

export type { Peer };

export interface AcceptOptions {
  /** Proxies that begin each connection with a PROXY protocol header; connections from there without one are rejected. */
  readonly proxyNetworks?: BlockList;
  /** Proxies among them that may omit the header, because they forward the client's address by other means. */
  readonly headerless?: BlockList;
  /** Logs invalid headers and failed accepts. */
  readonly log?: Logger;
}

export interface ListenOptions extends AcceptOptions {
  /** An address, `*` for every IPv4 address or `::` for every IPv6 address of the machine. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** Takes a new connection. It must listen for `error` from its first turn on. */
export type OnSocket = (socket: Socket, peer: Peer) => void;

export interface TcpListener {
  readonly port: number;
  /** Stops accepting and drops connections that were not handed over yet. Idempotent. */
  close(): Promise<void>;
}

const HEADER_TIMEOUT_MS = 5000;
const NO_HEADER: ProxyHeader = { peer: undefined, consumed: 0 };

/**
 * Listens and hands over each connection with the real client's address, behind PROXY protocol too.
 * No byte of the client is lost or read before the handover.
 * @throws the system's error when the address cannot be listened on
 */
export async function listenTcp(options: ListenOptions, onSocket: OnSocket): Promise<TcpListener> {
  const server = createServer({ noDelay: true, keepAlive: true });
  const dropPending = acceptSockets(server, options, onSocket);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listenAddress(options.host, options.port), () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: async () => {
      server.close();
      dropPending();
    },
  };
}

/** Arguments of `net.Server.listen` for a host as `ListenOptions` and Server.xml name it. */
export function listenAddress(host: string, port: number): { host: string; port: number; ipv6Only: boolean } {
  return { host: host === '*' ? '0.0.0.0' : host, port, ipv6Only: isIPv6(host) };
}

/**
 * Makes `server` hand over its connections like `listenTcp`.
 * @returns drops the connections whose PROXY header is still to come
 */
export function acceptSockets(server: Server, options: AcceptOptions, onSocket: OnSocket): () => void {
  const { proxyNetworks, headerless, log } = options;
  const pending = new Set<Socket>();
  server.on('error', (error) => {
    if (server.listening) log?.error({ err: error }, 'a connection could not be accepted');
  });
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    if (peer === undefined) {
      socket.destroy();
    } else if (!includes(proxyNetworks, peer.remoteAddress)) {
      onSocket(socket, peer);
    } else {
      pending.add(socket);
      readProxyHeader(socket, includes(headerless, peer.remoteAddress), (result) => {
        pending.delete(socket);
        if (result instanceof Error) {
          log?.warn({ proxy: peer.remoteAddress }, `connection refused: ${result.message}`);
          socket.destroy();
        } else if (!socket.destroyed) {
          onSocket(socket, result.peer ?? peer);
        }
      });
    }
  });
  return () => {
    for (const socket of pending) socket.destroy();
  };
}

/** True when an address is in one of the networks; never for undefined networks or what is no address. */
export function includes(networks: BlockList | undefined, address: string): boolean {
  const family = isIP(address);
  return networks !== undefined && family !== 0 && networks.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** Undefined when the connection is gone already. */
function peerOf(socket: Socket): Peer | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  if (localAddress === undefined || localPort === undefined) return undefined;
  return {
    remoteAddress: canonicalAddress(remoteAddress),
    remotePort,
    localAddress: canonicalAddress(localAddress),
    localPort,
  };
}

/**
 * Calls `done` once: with the header, when it is read and the bytes behind it are put back; with an error when
 * the connection brings none that is needed; with neither address nor error when it has closed or needs none.
 */
function readProxyHeader(socket: Socket, optional: boolean, done: (result: ProxyHeader | Error) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const finish = (result: ProxyHeader | Error): void => {
    clearTimeout(timer);
    socket.off('readable', read).off('end', ended).off('close', closed);
    // By the next tick the socket has left the mode that a `readable` listener sets.
    process.nextTick(() => {
      socket.off('error', ignore);
      done(result);
    });
  };
  const read = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    if (optional && !isProxyHeader(seen)) {
      socket.unshift(seen);
      return finish(NO_HEADER);
    }
    let header: ProxyHeader | undefined;
    try {
      header = parseProxyHeader(seen);
    } catch (error) {
      return finish(error as Error);
    }
    if (header === undefined) return;
    if (header.consumed < seen.length) socket.unshift(seen.subarray(header.consumed));
    finish(header);
  };
  const late = (): void =>
    finish(optional && seen.length === 0 ? NO_HEADER : new Error('no PROXY protocol header in time'));
  const closed = (): void => finish(NO_HEADER);
  const ended = (): void => void socket.destroy();
  const ignore = (): void => {};
  const timer = setTimeout(late, HEADER_TIMEOUT_MS);
  socket.on('readable', read).on('end', ended).on('close', closed).on('error', ignore);
}
