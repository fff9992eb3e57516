import { acceptsGzip, byteRange, cacheControl, respond, sliceRange } from './respond.ts';
import type { Exchange } from '../answer/exchange.ts';
import type { Media } from '../answer/played-stream.ts';
import type { Text } from '../answer/text.ts';

const PLAYLIST_TYPE = 'application/vnd.apple.mpegurl';
const MEDIA_TYPES = { video: 'video/mp4', audio: 'audio/mp4', ts: 'video/mp2t', subtitle: 'text/vtt' } as const;

type OnSent = (bytes: number) => void;

/** Status of an answer that the stream has nothing to play yet. */
export const STARTING_STATUS = 201;

/** Answers that the stream has nothing to play yet. */
export function sendNothing(exchange: Exchange): void {
  respond(exchange, { status: STARTING_STATUS, headers: {}, body: [] });
}

/** @param maxAge as in `cacheControl` */
export function sendMedia({ type, body }: Media, maxAge: number, exchange: Exchange, onSent: OnSent): void {
  const headers: Record<string, string> = { 'content-type': MEDIA_TYPES[type], 'accept-ranges': 'bytes' };
  cache(exchange, headers, maxAge);
  const { range: wanted } = exchange.request.headers;
  if (wanted === undefined) {
    respond(exchange, { status: 200, headers, body }, onSent);
    return;
  }
  const length = body.reduce((sum, part) => sum + part.length, 0);
  const range = byteRange(wanted, length);
  if (range === undefined) {
    respond(exchange, { status: 200, headers, body }, onSent);
  } else if (range === 'unsatisfiable') {
    respond(exchange, { status: 416, headers: { ...headers, 'content-range': `bytes */${length}` }, body: [] });
  } else {
    const { first, last } = range;
    headers['content-range'] = `bytes ${first}-${last}/${length}`;
    respond(exchange, { status: 206, headers, body: sliceRange(body, first, last) }, onSent);
  }
}

/** Sends a playlist, compressed if the client accepts it. @param maxAge as in `cacheControl` */
export function sendText(text: Text, maxAge: number, exchange: Exchange, onSent: OnSent): Promise<void> | void {
  const { vary } = exchange.headers;
  const headers: Record<string, string> = {
    'content-type': PLAYLIST_TYPE,
    vary: vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`,
  };
  cache(exchange, headers, maxAge);
  if (!acceptsGzip(exchange.request.headers['accept-encoding'])) {
    respond(exchange, { status: 200, headers, body: [text.plain] }, onSent);
    return;
  }
  headers['content-encoding'] = 'gzip';
  const gzipped = text.gzipped();
  if (Buffer.isBuffer(gzipped)) {
    respond(exchange, { status: 200, headers, body: [gzipped] }, onSent);
    return;
  }
  return gzipped.then((bytes) => respond(exchange, { status: 200, headers, body: [bytes] }, onSent));
}

function cache(exchange: Exchange, headers: Record<string, string>, maxAge: number): void {
  const value = cacheControl(maxAge);
  if (value === undefined) delete exchange.headers['cache-control'];
  else headers['cache-control'] = value;
}
