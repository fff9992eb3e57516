import { Http2ServerResponse } from 'node:http2';
import type { HttpResponse } from '../../../protocols/http.ts';
import type { Exchange } from '../answer/exchange.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
}

/** Limit for sending one answer: a slow client keeps media in memory that is released otherwise. */
const MAX_SENDING_MS = 60_000;

/**
 * Writes an answer from memory, with the headers that the exchange has already.
 * @param onSent called with the number of body bytes once they were sent
 */
export function respond(exchange: Exchange, answer: Answer, onSent?: (bytes: number) => void): void {
  const { request, response } = exchange;
  let length = 0;
  for (const part of answer.body) length += part.length;
  response.writeHead(answer.status, { ...exchange.headers, ...answer.headers, 'content-length': length });
  if (request.method === 'HEAD' || length === 0) {
    response.end();
    return;
  }
  if (onSent !== undefined) sinkOf(response).once('finish', () => onSent(length));
  if (answer.body.length === 1) {
    response.end(answer.body[0]);
  } else {
    response.cork();
    for (const part of answer.body) response.write(part);
    response.end();
    response.uncork();
  }
  if (response.writableLength === 0) return;
  const deadline = setTimeout(() => response.destroy(), MAX_SENDING_MS);
  response.once('close', () => clearTimeout(deadline));
}

/** Emits `finish` when the response was sent: that of HTTP/2 does so also after its client left, its stream does not. */
function sinkOf(response: HttpResponse): Pick<HttpResponse, 'once'> {
  return response instanceof Http2ServerResponse ? response.stream : response;
}

/** Value of Cache-Control for answers that no cache may keep. */
export const NOT_CACHED = 'no-cache, no-store';

/** Value of Cache-Control for a configured age (docs/compatibility.md#configuration); undefined for no header. */
export function cacheControl(maxAge: number): string | undefined {
  if (maxAge < 0) return undefined;
  return maxAge === 0 ? NOT_CACHED : `max-age=${maxAge}`;
}

/** Tests whether Accept-Encoding names gzip and does not exclude it. */
export function acceptsGzip(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const at = accept.indexOf('gzip');
  return at >= 0 && !/^gzip\s*;\s*q=0(\.0*)?\s*(,|$)/.test(accept.slice(at));
}

export type ByteRange = { readonly first: number; readonly last: number } | 'unsatisfiable';

/**
 * Reads the single range of a Range header; undefined where the header is to be ignored:
 * other units, several ranges, malformed (RFC 9110 section 14.2).
 */
export function byteRange(header: string | undefined, length: number): ByteRange | undefined {
  const match = header === undefined ? null : /^bytes=(\d*)-(\d*)$/.exec(header);
  if (match === null) return undefined;
  const [, from = '', to = ''] = match;
  if (from === '') {
    if (to === '') return undefined;
    const count = Math.min(Number(to), length);
    return count === 0 ? 'unsatisfiable' : { first: length - count, last: length - 1 };
  }
  const first = Number(from);
  const last = to === '' ? length - 1 : Math.min(Number(to), length - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= length ? 'unsatisfiable' : { first, last };
}

export function sliceRange(body: readonly Buffer[], first: number, last: number): Buffer[] {
  const slices: Buffer[] = [];
  let at = 0;
  for (const part of body) {
    const start = Math.max(0, first - at);
    const end = Math.min(part.length, last + 1 - at);
    if (start < end) slices.push(part.subarray(start, end));
    at += part.length;
  }
  return slices;
}
