import { TOKEN } from '../support/server/kiln.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';
import { OFFER } from './sdp.ts';

const AUTHORIZATION = `Basic ${Buffer.from(TOKEN).toString('base64')}`;

const STRANGE = [
  '..',
  '%2e%2e%2f',
  '%00',
  '%',
  '%ff',
  '%E0%A4%A',
  '*',
  'live',
  'app',
  'default',
  '__proto__',
  'constructor',
  'llhls.m3u8',
  'chunklist_0_video_x_llhls.m3u8',
  'part_0_99999999999_0_video_x_llhls.m4s',
  'ts:playlist.m3u8',
  'playlist.m3u8?format=ts',
  'medialist_1_hls.m3u8',
  'seg_1_99999999999_hls.ts',
  'a'.repeat(900),
  'a'.repeat(5000),
  '\u00e9',
  '',
];
const DIRECTIVES = ['0', '1', '-1', '99999999999999', '1e9', 'NaN', '', '%', '0x10'];

const RANGES = ['bytes=0-', 'bytes=-1', 'bytes=5-2', 'bytes=0-0,5-9', 'bytes=99999999999-', 'lines=1'];
const CREDENTIALS = [AUTHORIZATION, AUTHORIZATION, 'Basic', 'Basic !!!', 'Bearer x'];
const BODIES = ['{}', '[', '['.repeat(20_000), '{"__proto__":{"a":1}}', 'x'.repeat(100_000), ''];
const DIRECTIONS = ['whep', 'whep', 'whep', 'whip', 'whip', 'send', '', 'x'];
const TYPES = ['text/plain', '', 'application/json'];

const API_PATHS = [
  '/v1/version',
  '/v1/vhosts',
  '/v1/vhosts/default',
  '/v1/vhosts/default/apps',
  '/v1/vhosts/default/apps/app',
  '/v1/vhosts/default/apps/app/outputProfiles',
  '/v1/vhosts/default/apps/app/streams',
  '/v1/vhosts/default/apps/app/streams/live',
  '/v1/stats/current',
  '/v1/stats/current/vhosts/default/apps/app/streams/live',
  '/openapi.json',
  '/livez',
  '/readyz',
];

interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What is live, by URL path: playlists, parts, segments. */
export type LivePaths = readonly string[];

function serialize({ method, path, headers = {}, body }: HttpRequest): Buffer {
  const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body === undefined ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}${length}\r\n${body ?? ''}`);
}

function strangePath(path: string, random: Random): string {
  const [bare = '', query = ''] = path.split('?');
  const names = bare.split('/');
  if (random.chance(0.5)) names[1 + random.below(names.length)] = random.pick(STRANGE);
  const [msn, part, skip] = [random.pick(DIRECTIVES), random.pick(DIRECTIVES), random.pick(['YES', 'v2', 'no'])];
  const directives = `_HLS_msn=${msn}&_HLS_part=${part}&_HLS_skip=${skip}`;
  return `${names.join('/')}?${random.chance(0.7) ? directives : query}`;
}

function viewer(random: Random, live: LivePaths): HttpRequest {
  const path = random.pick(['/', '/app/live', '/-/assets/kiln.css', '/app/live/llhls.m3u8', ...live]);
  return {
    method: random.pick(['GET', 'GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']),
    path: random.chance(0.4) ? strangePath(path, random) : path,
    headers: {
      ...(random.chance(0.3) && { range: random.pick(RANGES) }),
      ...(random.chance(0.3) && { 'accept-encoding': random.pick(['gzip', 'gzip;q=0', 'br, gzip', '*']) }),
      ...(random.chance(0.3) && { origin: random.pick(['http://a.example', 'null', '']) }),
      ...(random.chance(0.1) && { 'x-forwarded-for': random.pick(['1.2.3.4', 'x', '1.1.1.1, 2.2.2.2']) }),
    },
  };
}

function manager(random: Random): HttpRequest {
  const path = random.pick(API_PATHS);
  const method = random.pick(['GET', 'GET', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
  // the live stream is what the checks watch
  const changes = method === 'DELETE' ? path.replace(/live$/, `attack${random.below(16)}`) : path;
  return {
    method,
    path: random.chance(0.3) && method !== 'DELETE' ? strangePath(path, random) : changes,
    headers: {
      ...(random.chance(0.9) && { authorization: random.pick(CREDENTIALS) }),
      ...(random.chance(0.3) && { 'x-request-id': random.pick(['a', 'x'.repeat(500), '../../']) }),
    },
    ...(random.chance(0.4) && { body: random.pick(BODIES) }),
  };
}

/** WHEP: offers, whole and with lines lost, doubled and changed, and calls about sessions that are none. */
function whep(random: Random): HttpRequest {
  const method = random.pick(['POST', 'POST', 'POST', 'POST', 'PATCH', 'DELETE', 'OPTIONS']);
  const session = `/app/live/${random.pick(['x', '00000000-0000-0000-0000-000000000000', '__proto__'])}`;
  const path = method === 'POST' || method === 'OPTIONS' ? '/app/live' : session;
  const type = method === 'PATCH' ? 'application/trickle-ice-sdpfrag' : 'application/sdp';
  return {
    method,
    path: `${path}?direction=${random.pick(DIRECTIONS)}${random.chance(0.2) ? '&transport=tcp' : ''}`,
    headers: {
      'content-type': random.chance(0.9) ? type : random.pick(TYPES),
      ...(random.chance(0.5) && { 'if-match': random.pick(['*', '"x"', '']) }),
    },
    body: brokenSdp(random),
  };
}

export function brokenSdp(random: Random): string {
  const lines = OFFER.split('\r\n');
  for (let i = random.below(4); i > 0; i--) {
    const at = random.below(lines.length);
    const line = lines[at] ?? '';
    const broken = random.pick([
      () => [],
      () => [line, line],
      () => [line, random.pick(lines)],
      () => [line.replace(/\d+/g, () => random.pick(['0', '-1', '127', '65536', '4294967296', 'x']))],
      () => [line.slice(0, random.below(line.length + 1))],
      () => Array.from({ length: 500 }, () => line),
      () => [`${line}${'y'.repeat(2000)}`],
    ])();
    lines.splice(at, 1, ...broken);
  }
  return lines.join(random.pick(['\r\n', '\r\n', '\r\n', '\n']));
}

/** Who asks: viewers of LL-HLS and of pages, managers, players and publishers over WebRTC. */
export const HTTP_CLIENTS = { viewer, manager, whep } as const;

/** Bytes of one request or several, for a port that serves viewers or for that of the API. */
export function httpAttack(
  client: keyof typeof HTTP_CLIENTS,
  random: Random,
  live: LivePaths,
): { port: 'http' | 'api'; bytes: Buffer } {
  const make = () => HTTP_CLIENTS[client](random, live);
  const port = random.chance(0.05) ? random.pick(['http', 'api'] as const) : undefined;
  const first = make();
  const bytes = Buffer.concat([serialize(first), ...Array.from({ length: random.below(3) }, () => serialize(make()))]);
  const other = serialize(viewer(random, live));
  return {
    port: port ?? (first.path.startsWith('/v1') ? 'api' : 'http'),
    bytes: random.chance(0.5) ? bytes : mutate(bytes, random, other),
  };
}
