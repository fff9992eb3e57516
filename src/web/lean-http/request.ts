import type { Socket } from 'node:net';
import type { HttpRequest } from '../../protocols/http.ts';
import { LIMITS } from '../limits.ts';

type Headers = HttpRequest['headers'];

/** Header fields of a request: the bytes as Latin-1, and those that are read. */
export interface Fields {
  readonly lines: string;
  readonly headers: Headers;
}

/** A request without a body. */
export class LeanRequest implements HttpRequest {
  readonly method = 'GET';
  readonly url: string;
  readonly fields: Fields;
  readonly socket: Socket;

  constructor(url: string, fields: Fields, socket: Socket) {
    this.url = url;
    this.fields = fields;
    this.socket = socket;
  }

  get headers(): Headers {
    return this.fields.headers;
  }
}

/**
 * A GET request of HTTP/1.1 for a path, in visible ASCII (RFC 9112 sections 2 to 5), with neither folded lines nor spaces before a
 * colon nor line ends but CRLF. No two alternatives begin alike, so that matching takes linear time.
 */
const REQUEST = /^GET (\/[!-~]*) HTTP\/1\.1\r\n((?:[\w!#$%&'*+.^`|~-]+:[\t -~]*\r\n)+)\r\n$/;
const FIELD = /([^:]+):([^\r]*)\r\n/g;
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

const READ = new Set<string>([
  'accept-encoding',
  'access-control-request-headers',
  'cmcd-object',
  'cmcd-request',
  'cmcd-session',
  'cmcd-status',
  'host',
  'origin',
  'range',
  'x-forwarded-host',
] satisfies (keyof Headers)[]);
/** Fields that frame a message or change the protocol: left to `node:http`. */
const UNUSUAL = new Set([
  'content-length',
  'expect',
  'http2-settings',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Reads a request, unless it is unusual in any way.
 * @param head the bytes up to and with the empty line, as Latin-1
 * @param known fields of an earlier request of the connection: clients mostly send the same again
 */
export function parseRequest(head: string, socket: Socket, known: Fields | undefined): LeanRequest | undefined {
  // node:http counts a little less
  if (head.length >= LIMITS.headerBytes) return undefined;
  const match = REQUEST.exec(head);
  if (match === null) return undefined;
  const [, url = '', lines = ''] = match;
  const fields = known?.lines === lines ? known : parseFields(lines);
  return fields && new LeanRequest(url, fields, socket);
}

function parseFields(lines: string): Fields | undefined {
  const headers: Record<string, string> = {};
  let count = 0;
  for (const [, field = '', text = ''] of lines.matchAll(FIELD)) {
    const name = field.toLowerCase();
    const value = text.trim();
    if (++count > LIMITS.headers || UNUSUAL.has(name)) return undefined;
    if (name === 'connection' && value.toLowerCase() !== 'keep-alive') return undefined;
    if (!READ.has(name)) continue;
    // node:http joins some repeated fields and drops others
    if (headers[name] !== undefined) return undefined;
    headers[name] = value;
  }
  return HOST.test(headers['host'] ?? '') ? { lines, headers } : undefined;
}
