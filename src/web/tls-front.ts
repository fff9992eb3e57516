import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { CertificateStore } from '../access/certificates.ts';
import type { Logger } from '../log.ts';
import type { Peer } from '../protocols/tcp.ts';
import { LIMITS } from './limits.ts';

export interface TlsOptions {
  readonly certificates: CertificateStore;
  /** Offers HTTP/2 beside HTTP/1.1 (ALPN, RFC 7301). */
  readonly http2: boolean;
}

export interface TlsFront {
  /** Shakes hands on a connection of which no byte was read, or all that was is put back. */
  accept(socket: Socket, peer: Peer): void;
  /** Drops the connections that still shake hands. Idempotent. */
  close(): void;
}

/**
 * TLS for the connections of a port that is not its own, with the certificate that is in use when they come.
 * @param onSecure gets each connection when the handshake is done; `alpnProtocol` is what was agreed on
 */
export function createTlsFront(
  { certificates, http2 }: TlsOptions,
  log: Logger,
  onSecure: (socket: TLSSocket, peer: Peer) => void,
): TlsFront {
  /** By both ends of the TCP connection, which the socket of TLS shows as well. */
  const handshaking = new Map<string, { readonly socket: Socket; readonly peer: Peer }>();
  let initial: CertificateStore['initial'];
  const server = createServer({
    ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
    handshakeTimeout: LIMITS.handshakeMs,
    SNICallback: (name, done) => done(null, certificates.select(name)),
  });
  server.on('secureConnection', (secure: TLSSocket) => {
    const key = keyOf(secure);
    const pending = handshaking.get(key);
    handshaking.delete(key);
    // the connection is gone where its ends are unknown
    if (pending === undefined) secure.destroy();
    else onSecure(secure, pending.peer);
  });
  server.on('tlsClientError', (error, secure) => {
    log.debug({ err: error, client: handshaking.get(keyOf(secure))?.peer.remoteAddress }, 'a TLS handshake failed');
    secure.destroy();
  });

  return {
    accept: (socket, peer) => {
      if (certificates.initial === undefined) {
        log.debug({ client: peer.remoteAddress }, 'a TLS connection refused: there is no certificate');
        socket.destroy();
        return;
      }
      // a context of its own after every change: sessions that were begun before are not resumed
      if (certificates.initial !== initial) {
        initial = certificates.initial;
        server.setSecureContext(initial);
      }
      const key = keyOf(socket);
      handshaking.set(key, { socket, peer });
      socket.once('close', () => {
        if (handshaking.get(key)?.socket === socket) handshaking.delete(key);
      });
      socket.allowHalfOpen = false;
      server.emit('connection', socket);
    },
    close: () => handshaking.forEach(({ socket }) => socket.destroy()),
  };
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`;
}
