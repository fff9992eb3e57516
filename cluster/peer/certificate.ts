import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls';

/**
 * Whether a certificate belongs to a node: its id is the common name of the subject, or a DNS name among the alternative
 * names (RFC 5280 section 4.2.1.6), without wildcards.
 */
export function namesNode(certificate: X509Certificate, id: string): boolean {
  const { CN: names } = certificate.toLegacyObject().subject as { readonly CN?: string | readonly string[] };
  if ([names].flat().includes(id)) return true;
  // with a dot in front it would stand for every name below it
  return !id.startsWith('.') && certificate.checkHost(id, { subject: 'never', wildcards: false }) !== undefined;
}

/** Check for tls.connect(): the certificate has to name the host, and the node that is called. */
export function checkNode(host: string, certificate: PeerCertificate, id: string): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  if (wrong !== undefined) return wrong;
  const own = new X509Certificate(certificate.raw);
  return namesNode(own, id) ? undefined : new Error(`its certificate (${subjectOf(own)}) does not name the node ${id}`);
}

/** Which nodes the clients of connections may speak for, by their certificates. */
export class Callers {
  readonly #named = new WeakMap<Socket, Set<string>>();

  /** @returns why the client of the connection is not the node; undefined when it is */
  objection(socket: Socket, id: string): string | undefined {
    const named = this.#named.get(socket) ?? new Set();
    if (named.has(id)) return undefined;
    const { authorized, authorizationError: wrong, remoteAddress } = socket as TLSSocket;
    const certificate = (socket as TLSSocket).getPeerX509Certificate();
    if (certificate === undefined) return `the caller (${remoteAddress}) has shown no certificate`;
    const whose = `the certificate of the caller (${subjectOf(certificate)}, from ${remoteAddress})`;
    if (!authorized) return `${whose} is not valid: ${String(wrong)}`;
    if (!namesNode(certificate, id)) return `${whose} does not name the node ${id}`;
    this.#named.set(socket, named.add(id));
    return undefined;
  }
}

function subjectOf({ subject }: X509Certificate): string {
  return (subject ?? 'without a subject').replaceAll('\n', ', ');
}
