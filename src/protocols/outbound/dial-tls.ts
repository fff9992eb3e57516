import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import { dial, type DialOptions } from './dial.ts';
import type { OutboundGuard } from './guard.ts';

/** How long the handshake may take once a server has accepted the connection. */
const HANDSHAKE_MS = 10_000;

/**
 * Connects over TLS, as `dial` does without, and verifies the certificate of the server.
 * @throws the guard's error when there is no connection, or none that can be trusted
 */
export async function dialTls(
  guard: OutboundGuard,
  host: string,
  port: number,
  options: DialOptions = {},
): Promise<Socket> {
  const { signal } = options;
  const plain = await dial(guard, host, port, options);
  const socket = connect({ socket: plain, host, servername: serverName(host) });
  // the TLS socket reports errors of its connection
  plain.on('error', () => {});
  const late = AbortSignal.timeout(HANDSHAKE_MS);
  try {
    await once(socket, 'secureConnect', { signal: signal === undefined ? late : AbortSignal.any([signal, late]) });
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    if (signal?.aborted === true) throw guard.unwanted();
    const { reason, message } = error as Error & { readonly reason?: string };
    // after a semicolon Node explains how to trust more authorities
    const why = late.aborted ? 'no answer in time' : (reason ?? message).split(';')[0];
    throw guard.error(`the TLS connection failed: ${why}`);
  }
}

/** Server name for TLS, which cannot be an address (RFC 6066 section 3). */
function serverName(host: string): string {
  return /^[\d.]+$|:/.test(host) ? '' : host;
}
