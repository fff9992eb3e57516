import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Peer } from '../protocols/tcp.ts';
import type { CertificateStore } from './certificates.ts';

export interface TlsFrontOptions {
  readonly certificates: CertificateStore;
  /** What is agreed on by ALPN (RFC 7301), the best first; without it nothing is. */
  readonly protocols?: string[];
  /** Gets each connection when the handshake is done; `alpnProtocol` is what was agreed on. */
  readonly onSecure: (socket: TLSSocket, peer: Peer) => void;
  /** Hears why a connection was dropped. @param peer undefined when it was gone by then */
  readonly onFailure: (reason: string, peer: Peer | undefined) => void;
}

export interface TlsFront {
  /** Shakes hands on a connection of which no byte was read, or all that was is put back. */
  accept(socket: Socket, peer: Peer): void;
  /** Drops the connections that still shake hands. Idempotent. */
  close(): void;
}

/** How long a client may take for its part of the handshake. */
export const HANDSHAKE = { longestMs: 10_000 };

/** What OpenSSL says of clients that do not speak TLS at all. */
const NO_TLS = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_HTTP_REQUEST', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);

/** TLS for the connections of a port that is not its own, with the certificate that is in use when they come. */
export function createTlsFront({ certificates, protocols, onSecure, onFailure }: TlsFrontOptions): TlsFront {
  /** By both ends of the TCP connection, which the socket of TLS shows as well. */
  const handshaking = new Map<string, { readonly socket: Socket; readonly peer: Peer }>();
  let initial: CertificateStore['initial'];
  const server = createServer({
    ...(protocols && { ALPNProtocols: protocols }),
    handshakeTimeout: HANDSHAKE.longestMs,
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
  server.on('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
    onFailure(
      NO_TLS.has(error.code ?? '') ? 'the client does not speak TLS' : reasonOf(error),
      handshaking.get(keyOf(secure))?.peer,
    );
    secure.destroy();
  });

  return {
    accept: (socket, peer) => {
      if (certificates.initial === undefined) {
        onFailure('no certificate is loaded', peer);
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

/** OpenSSL's own words come with places in its source in front of them. */
function reasonOf({ message, reason }: NodeJS.ErrnoException & { reason?: string }): string {
  return reason ?? message;
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`;
}
