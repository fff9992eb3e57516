import { connect, type Socket } from 'node:net';
import type { Random } from '../../soak/random.ts';

/** Bytes of a connection, in the pieces in which they are sent. */
export type Pieces = readonly Buffer[];

const FIELDS = [
  'Accept-Encoding: gzip',
  'Accept-Encoding:gzip\t ',
  'accept-encoding: identity',
  'Origin: https://a.example',
  'Range: bytes=0-9',
  'Range: bytes=5-2',
  'Range: bytes=99999999-',
  'Connection: keep-alive',
  'Connection: close',
  'Connection: keep-alive, x',
  'Connection:',
  'Proxy-Connection: close',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) "q"',
  'Cookie: a=b; c=\xe4',
  'X-Forwarded-Host: b',
  'X-Empty:',
  'TE: trailers',
  'Upgrade: h2c',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'Expect: x',
  'Trailer: x',
];
const FRAMING = [
  'Content-Length: 0',
  'Content-Length: 5',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length: 99999999999999999999',
  'Content-Length:',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, identity',
  'transfer-encoding:\tchunked',
  'Transfer-Encoding:',
];
const HOSTILE = [
  'Host: localhost',
  'HOST: other',
  'Host : localhost',
  ' folded',
  '\tfolded',
  'X: a\r\n b',
  'X',
  ': x',
  'X(): y',
  'X: a\0b',
  'X: a\x7fb',
  'X: a\x01b',
  'X: \x85\xa0',
  'X: a\rb',
  'X: a\nY: b',
  'X: a\r',
  'X\0: a',
  'Keep-Alive: timeout=1',
];
const HOSTS = [
  'localhost',
  'localhost:80',
  '[::1]',
  '',
  'a@localhost',
  'localhost, localhost',
  'elsewhere.test',
  'a/b',
  ' localhost ',
  '\xe4',
];
const METHODS = ['get', 'GETS', 'HEAD', 'POST', 'OPTIONS', 'CONNECT', 'PRI', 'DELETE', 'G\0T', 'Get', 'QUERY', ''];
const VERSIONS = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ', 'HTTP/01.1', 'HTTP/1.', 'RTSP/1.0', ''];
const BODIES = [
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\n',
  '5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n',
  'G',
  '-1\r\n',
  '\r\n',
];

/** Target of a request, for one of some paths. */
function target(random: Random, paths: readonly string[]): string {
  const path = random.pick(paths);
  if (random.chance(0.9)) return path;
  return random.pick([
    `http://localhost${path}`,
    `//localhost${path}`,
    `${path}#x`,
    `${path}?${'x'.repeat(random.pick([10, 1500, 17_000]))}`,
    `${path} x`,
    `${path}\t`,
    `${path}?\xe4`,
    `${path}?\0`,
    `${path}?"<>\\^{|}`,
    path.slice(1),
    '*',
    '',
  ]);
}

/** A request, mostly one that is in order, as Latin-1. */
function request(random: Random, paths: readonly string[]): string {
  const odd = random.chance(0.4);
  const method = odd && random.chance(0.3) ? random.pick(METHODS) : 'GET';
  const version = odd && random.chance(0.2) ? random.pick(VERSIONS) : 'HTTP/1.1';
  const host = odd && random.chance(0.3) ? random.pick(HOSTS) : 'localhost';
  const lines = [`${method} ${target(random, paths)} ${version}`];
  const fields = Array.from({ length: random.below(4) }, () => random.pick(FIELDS.slice(0, odd ? FIELDS.length : 8)));
  if (odd && random.chance(0.3)) fields.push(random.pick(FRAMING));
  if (odd && random.chance(0.1)) fields.push(random.pick(FRAMING));
  if (odd && random.chance(0.4)) fields.push(random.pick(HOSTILE));
  if (odd && random.chance(0.03)) fields.push(`X-Long: ${'x'.repeat(random.pick([8000, 16_200, 17_000]))}`);
  if (odd && random.chance(0.03)) fields.push(...Array.from({ length: 120 }, (_, index) => `X-${index}: y`));
  if (!odd || random.chance(0.95)) fields.splice(random.below(fields.length + 1), 0, `Host: ${host}`);
  const end = odd && random.chance(0.15) ? random.pick(['\n', '\r', '\r\r\n', '\n\r']) : '\r\n';
  const body = odd && random.chance(0.4) ? random.pick(BODIES) : '';
  const text = [...lines, ...fields, '', body].join(end === '\r\n' || random.chance(0.5) ? end : '\r\n');
  return odd && random.chance(0.05) ? `\r\n${text}` : text;
}

/** Requests of one connection with one byte changed now and then, cut anywhere. */
export function connectionOf(random: Random, count: number, paths: readonly string[]): Pieces {
  const text = Array.from({ length: count }, () => request(random, paths)).join('');
  const bytes = Buffer.from(text, 'latin1');
  if (random.chance(0.15))
    bytes[random.below(bytes.length)] = random.chance(0.5) ? random.below(256) : random.pick([0, 10, 13, 32]);
  const cuts = random.chance(0.4) ? [] : Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length));
  const sorted = [0, ...cuts.sort((one, other) => one - other), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

/** What a server says to some bytes, and whether it ends the connection by itself. */
export interface Fate {
  readonly text: string;
  readonly isEnded: boolean;
}

/**
 * Sends bytes piece by piece, each when the one before has been dealt with, then ends the client's side.
 * @param turns of the event loop without anything new, after which nothing is expected any more: the server is in this process
 */
export async function fateOf(port: number, pieces: Pieces, turns: number): Promise<Fate> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  let events = 0;
  let isEnded = false;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('data', (chunk: Buffer) => void (events++, (text += chunk.toString('latin1'))));
  socket.on('error', () => events++).once('end', () => void (events++, (isEnded = true)));
  socket.once('close', () => (isEnded = true));
  const settle = async (limit: number): Promise<void> => {
    for (let quiet = 0, seen = events; quiet < limit; quiet++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen !== events) [quiet, seen] = [0, events];
    }
  };
  await connected(socket);
  for (const piece of pieces) {
    if (!isEnded) socket.write(piece);
    // a server that closes while bytes are on their way resets the connection, and its last words may be lost
    await settle(turns / 4);
  }
  await settle(turns);
  const fate = { isEnded };
  socket.end();
  await settle(turns);
  socket.destroy();
  await closed;
  return { text: text.replace(/\r\nDate: [^\r]*/g, '\r\nDate: now'), ...fate };
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
}
