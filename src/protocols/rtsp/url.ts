import { hostFromUrl } from '../../lib/address.ts';
import { percentDecoded } from '../../lib/percent.ts';
import { cutsCredentials } from '../outbound/fragment.ts';

/** Transport of media: in the connection of the requests, or in UDP packets of its own. */
export type MediaTransport = 'tcp' | 'udp';

/** `rtsp://[user[:password]@]host[:port]/path[?query]`, or the same with `rtspc`. */
export interface RtspUrl {
  /** Without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** URL for requests: as given, with the scheme `rtsp`, without user, `transport` and fragment. */
  readonly href: string;
  readonly user: string | undefined;
  readonly password: string;
  /** Asked for by `transport=tcp` or `transport=udp` in the query, which servers do not see. */
  readonly transport: MediaTransport | undefined;
}

export const RTSP_PORT = 554;
const MAX_LENGTH = 4096;
const FORM = /^rtspc?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)([^?#]*)(\?[^#]*)?/i;
const TRANSPORT = /^transport=(tcp|udp)$/i;

/** Returns undefined for anything but such a URL. */
export function parseRtspUrl(href: string): RtspUrl | undefined {
  if (href.length > MAX_LENGTH || /[\s\x00-\x1f\x7f]/.test(href) || cutsCredentials(href)) return undefined;
  const parts = FORM.exec(withLastAt(href));
  if (parts === null) return undefined;
  const [, credentials, authority = '', path = '', query = ''] = parts;
  const address = `http://${authority}/`;
  if (!URL.canParse(address)) return undefined;
  const { hostname } = new URL(address);
  const port = /:(\d+)$/.exec(authority)?.[1];
  if (hostname === '' || (port !== undefined && (Number(port) < 1 || Number(port) > 65_535))) return undefined;
  const asked = query.slice(1).split('&');
  const kept = asked.filter((part) => !TRANSPORT.test(part)).join('&');
  const transport = asked.map((part) => TRANSPORT.exec(part)?.[1]?.toLowerCase()).find((found) => found !== undefined);
  const [user, ...password] = credentials?.split(':') ?? [];
  return {
    host: hostFromUrl(hostname),
    port: port === undefined ? RTSP_PORT : Number(port),
    href: `rtsp://${authority}${path}${kept === '' ? '' : `?${kept}`}`,
    user: user === undefined ? undefined : percentDecoded(user),
    password: percentDecoded(password.join(':')),
    transport: transport as MediaTransport | undefined,
  };
}

/** Escapes all @ but the last: cameras have passwords with an @ that is not escaped. */
function withLastAt(href: string): string {
  const start = href.indexOf('//') + 2;
  const end = start + (/[/?#]/.exec(href.slice(start))?.index ?? href.length);
  const authority = href.slice(start, end);
  const last = authority.lastIndexOf('@');
  if (last < 0) return href;
  return `${href.slice(0, start)}${authority.slice(0, last).replaceAll('@', '%40')}${authority.slice(last)}${href.slice(end)}`;
}
