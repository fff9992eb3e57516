import { percentDecoded } from '../../lib/percent.ts';

/** Stream that an SRT caller asks for by its stream id (docs/compatibility.md#urls). */
export interface StreamId {
  /** Name of a virtual host, or a domain name. */
  readonly host: string;
  readonly app: string;
  readonly stream: string;
  readonly playlist?: string;
  readonly query: URLSearchParams;
  /** The whole stream id, decoded, as a URL. */
  readonly url: string;
  /** Declared by the caller; undefined where it declares nothing. */
  readonly mode?: 'publish' | 'request';
}

/** Log text for callers whose stream id `readStreamId` cannot read. */
export const UNREADABLE_STREAM_ID =
  'its stream id does not name a stream: <virtual host>/<application>/<stream> or #!::r=<virtual host>/<application>/<stream> does';

/** Characters. */
const MAX_PART = 255;
const KEYED = '#!::';
const DEPRECATED = /^srt:\/\/([^/?]*)\/([^?]*)/i;

/**
 * Reads a stream id: `{host}/{app}/{stream}[/{playlist}][?query]`, the same behind `srt://`, where the host may have a
 * port, or as the value of `u` or `r` in `#!::key=value,...` (SRT access control guidelines; `h` and `m` are understood).
 * It may be percent-encoded as a whole.
 * @param mapped what stands for an empty one, from Bind/.../SRT/StreamMap
 * @returns undefined for anything else
 */
export function readStreamId(given: string, mapped?: string): StreamId | undefined {
  const text = given.trim() === '' ? (mapped ?? '') : given.trim();
  if (text.startsWith(KEYED)) return readKeyed(text.slice(KEYED.length));
  const decoded = percentDecoded(text);
  if (decoded.startsWith(KEYED)) return readKeyed(decoded.slice(KEYED.length));
  return decoded.startsWith('#') ? undefined : readPath(decoded);
}

function readPath(text: string): StreamId | undefined {
  const [path = '', ...rest] = text.split('?');
  const deprecated = DEPRECATED.exec(text);
  const plain = deprecated === null ? path : `${withoutPort(deprecated[1] ?? '')}/${deprecated[2] ?? ''}`;
  const parts = plain.replace(/^\//, '').split('/');
  const [host = '', app = '', stream = '', playlist] = parts;
  if (parts.length < 3 || parts.length > 4 || parts.some((part) => part === '' || part.length > MAX_PART))
    return undefined;
  return {
    host,
    app,
    stream,
    ...(playlist !== undefined && { playlist }),
    query: new URLSearchParams(rest.join('?')),
    url: deprecated === null ? `srt://${text.replace(/^\//, '')}` : text,
  };
}

function readKeyed(text: string): StreamId | undefined {
  const values = new Map(
    text.split(',').map((pair) => {
      const [key = '', ...value] = pair.split('=');
      return [key.trim(), percentDecoded(value.join('='))] as const;
    }),
  );
  const user = values.get('u') ?? '';
  const resource = values.get('r') ?? '';
  const path =
    readPath(user.includes('/') ? user : resource) ??
    readPath(`${values.get('h') ?? ''}/${resource.replace(/^\//, '')}`);
  const mode = values.get('m');
  if (path === undefined || mode === 'bidirectional') return undefined;
  return mode === 'publish' || mode === 'request' ? { ...path, mode } : path;
}

function withoutPort(host: string): string {
  return host.replace(/:\d*$/, '');
}
