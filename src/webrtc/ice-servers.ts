import { createHmac, randomBytes } from 'node:crypto';
import { CREDENTIAL_LIFETIME_MS } from '../config/elements/bind.ts';
import type { WebrtcBindConfig } from '../config/model.ts';
import { hostInUrl } from '../lib/address.ts';

/** STUN or TURN server as sent to a client. */
export interface IceServer {
  readonly urls: readonly string[];
  readonly userName?: string;
  readonly credential?: string;
}

interface Asking {
  /** Host in the client's URL. */
  readonly hostName: string;
  readonly query: URLSearchParams;
}

type Given = Pick<WebrtcBindConfig, 'iceServers' | 'iceCandidates'>;

const ID_BYTES = 8;

/**
 * Servers to send to a client of this port: the configured ones, and the relay (docs/compatibility.md#webrtc-signalling)
 * if the client asks for `transport=relay` or `all`, or the relay is forced. Servers with a secret get a name and
 * password for each client.
 */
export function iceServersFor({ iceServers, iceCandidates }: Given, { hostName, query }: Asking): IceServer[] {
  const configured = iceServers.map(({ urls, userName, credential, secret, lifetime }) => ({
    urls,
    ...(secret === undefined ? { userName, credential } : mint(secret, lifetime)),
  }));
  const { tcpRelay, tcpRelaySecret, tcpRelayForce, defaultTransport } = iceCandidates;
  const transport = (query.get('transport') ?? defaultTransport).toLowerCase();
  const relays = tcpRelayForce || transport === 'relay' || transport === 'all';
  if (!relays || tcpRelay.length === 0 || !tcpRelaySecret) return configured;
  const urls = tcpRelay.map(
    ({ host, port }) => `turn:${hostInUrl(host === '*' ? hostName : host)}:${port}?transport=tcp`,
  );
  return [...configured, { urls, ...mint(tcpRelaySecret, CREDENTIAL_LIFETIME_MS) }];
}

/** Makes a user name that contains its expiry, and its password (draft-uberti-behave-turn-rest-00 section 2.2). */
function mint(secret: string, lifetimeMs: number): Required<Pick<IceServer, 'userName' | 'credential'>> {
  const expiry = Math.ceil((Date.now() + lifetimeMs) / 1000);
  // the relay has quotas per name
  const userName = `${expiry}:${randomBytes(ID_BYTES).toString('hex')}`;
  return { userName, credential: createHmac('sha1', secret).update(userName).digest('base64') };
}

/** Fields of an offer of the WebSocket signalling; clients read either of two spellings. */
export function offerFields(servers: readonly IceServer[]): object {
  if (servers.length === 0) return {};
  return {
    iceServers: servers.map(({ urls, userName, credential }) => ({ urls, username: userName, credential })),
    ice_servers: servers.map(({ urls, userName, credential }) => ({ urls, user_name: userName, credential })),
  };
}

/** Values of `Link` headers (RFC 9725 section 4.6). */
export function linkHeaders(servers: readonly IceServer[]): string[] {
  const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;
  return servers.flatMap(({ urls, userName, credential }) => {
    const secret =
      userName === undefined || credential === undefined
        ? ''
        : `; username=${quoted(userName)}; credential=${quoted(credential)}; credential-type="password"`;
    return urls.map((url) => `<${url}>; rel="ice-server"${secret}`);
  });
}
