import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Peer } from '../protocols/tcp.ts';
import type { CertificateStore } from './certificates.ts';

export interface TlsFrontOptions {
  readonly certificates: CertificateStore;
  /** Protocols for ALPN (RFC 7301), the preferred one first; undefined: no ALPN. */
  readonly protocols?: string[];
  /** Called after each handshake; `alpnProtocol` is its result. */
  readonly onSecure: (socket: TLSSocket, peer: Peer) => void;
  /** Called with the reason for each dropped connection. @param peer undefined if it was gone already */
  readonly onFailure: (reason: string, peer: Peer | undefined) => void;
}

export interface TlsFront {
  /** Begins the handshake on a connection of which no byte was read, or all read bytes were put back. */
  accept(socket: Socket, peer: Peer): void;
  close(): void;
}

export const HANDSHAKE = { longestMs: 10_000 };

/** OpenSSL's codes for clients that do not speak TLS at all. */
const NO_TLS = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_HTTP_REQUEST', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);

/** TLS for connections of another listener, with the certificate that is in use when they arrive. */
export function createTlsFront({ certificates, protocols, onSecure, onFailure }: TlsFrontOptions): TlsFront {
  /** By both ends of the TCP connection, which the TLS socket has as well. */
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
    // without known ends the connection is gone
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
      // a new context after every change: sessions with the former certificate are not resumed
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

/** Messages of OpenSSL begin with places in its source. */
function reasonOf({ message, reason }: NodeJS.ErrnoException & { reason?: string }): string {
  return reason ?? message;
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`;
}
