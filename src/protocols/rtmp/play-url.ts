import { hostFromUrl } from '../../lib/address.ts';
import { percentDecoded } from '../../lib/percent.ts';
import { cutsCredentials } from '../outbound/fragment.ts';
import type { Credentials } from './publisher-authentication.ts';

/** `rtmp://[user[:password]@]host[:port]/app[/instance…]/stream[?query]`, or the same with `rtmps`. */
export interface PlayUrl {
  readonly secure: boolean;
  /** Without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** Host and port as the URL has them. */
  readonly authority: string;
  /** All of the path but its last segment. */
  readonly app: string;
  /** The last segment, with the query. */
  readonly name: string;
  readonly credentials: Credentials | undefined;
}

const PORTS = { 'rtmp:': 1935, 'rtmps:': 443 } as const;
const MAX_LENGTH = 4096;

/** Reads the URL of a stream to play. Returns undefined for anything but such a URL. */
export function parsePlayUrl(href: string): PlayUrl | undefined {
  if (href.length > MAX_LENGTH || /[\s\x00-\x1f\x7f]/.test(href) || cutsCredentials(href) || !URL.canParse(href))
    return undefined;
  const { protocol, hostname, host: authority, port, pathname, search, hash, username, password } = new URL(href);
  const [, app, name] = /^\/+(.+)\/([^/]+)$/.exec(pathname) ?? [];
  if ((protocol !== 'rtmp:' && protocol !== 'rtmps:') || hostname === '' || port === '0' || hash !== '')
    return undefined;
  if (app === undefined || name === undefined) return undefined;
  return {
    secure: protocol === 'rtmps:',
    host: hostFromUrl(hostname),
    port: port === '' ? PORTS[protocol] : Number(port),
    authority,
    app: percentDecoded(app),
    name: percentDecoded(name) + search,
    credentials: username === '' ? undefined : { user: percentDecoded(username), password: percentDecoded(password) },
  };
}
