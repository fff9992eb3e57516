import { once } from 'node:events';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createHttpPort } from '../../../../../src/web/http-port.ts';
import { Random } from '../../../../soak/random.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { urisOf } from '../../../../support/hls/playlist-uris.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../../support/media/packets.ts';

const REQUESTS = 10_000;
const AT_ONCE = 250;
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const CROSS_DOMAINS = { url: ['*.example'], header: [{ key: 'X-Own', value: 'yes' }] };
const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** A stream on a port that answers children directly, and on one that has only the routes. */
async function open(t: ExecutionContext) {
  const server = await openLlhls(t, {
    llhls: { ...LLHLS, crossDomains: CROSS_DOMAINS },
    hls: {},
    vhost: { host: { names: ['localhost', '[::1]'] } },
  });
  const listen = async (isDirect: boolean): Promise<number> => {
    const port = createHttpPort({ log: pino({ level: 'silent' }) });
    t.teardown(() => port.close(0));
    for (const { routes } of server.publishers) await port.app.register(routes);
    if (!isDirect) port.app.interceptors?.splice(0);
    return await port.listen(['127.0.0.1'], 0);
  };
  const [direct, routed] = [await listen(true), await listen(false)];
  const { output } = server.goLive([VIDEO, AUDIO]);
  const advance = (from: number, to: number): void => {
    const span = { from, to, gop: 60 };
    for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
  };
  return { ...server, direct, routed, advance };
}

interface Response {
  readonly status: string;
  readonly headers: readonly string[];
  readonly body: string;
}

/** Sends requests on one connection at once. @returns the responses, in order, without the header Date */
async function ask(port: number, requests: readonly string[]): Promise<Response[]> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.write(
    requests.map((request) => `${request}\r\n`).join('') + 'GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  );
  await once(socket, 'close');
  const text = Buffer.concat(chunks).toString('latin1');
  const responses: Response[] = [];
  for (let at = 0; at < text.length && responses.length < requests.length;) {
    const end = text.indexOf('\r\n\r\n', at);
    const [status = '', ...headers] = text.slice(at, end).split('\r\n');
    const length = Number(/\ncontent-length: (\d+)/i.exec(text.slice(at, end))?.[1] ?? 0);
    const isHead = requests[responses.length]?.startsWith('HEAD') === true;
    at = end + 4 + (isHead ? 0 : length);
    const shown = headers.filter((header) => !header.startsWith('Date: ')).map((header) => header.toLowerCase());
    responses.push({ status, headers: shown.sort(), body: text.slice(end + 4, at) });
  }
  return responses;
}

const QUERIES = [
  '',
  '?',
  '?_HLS_msn=0',
  '?_HLS_msn=0&_HLS_part=1',
  '?_HLS_msn=1&_HLS_skip=YES',
  '?_HLS_part=1',
  '?_HLS_msn=x',
  '?_HLS_msn=99999',
  '?_HLS_legacy=YES',
  '?_HLS_msn=0&_HLS_part=1&CMCD=br%3D%281%3Bv+2%29%2Csu',
  '?CMCD=%&CMCD=%22',
  '?format=ts',
  '?format=fmp4&a=%00%zz',
  '?a=b#c',
  ';a=b',
  '#c',
];
const HEADERS = [
  'Accept-Encoding: gzip',
  'Accept-Encoding: gzip;q=0',
  'Origin: https://a.example',
  'Origin: https://a.test',
  'Access-Control-Request-Headers: x-a, x-b',
  'CMCD-Request: bl=100,su',
  'CMCD-Session: sid="',
  'Range: bytes=0-9',
  'Range: bytes=-5',
  'Range: bytes=99999999-',
  'Range: bytes=9-1',
  'Range: lines=1-2',
  'Accept-Version: 2',
  'Connection: keep-alive',
  'Content-Length: 0',
  'Content-Type: text/x-odd',
  'X-Forwarded-Host: elsewhere.test',
  'X-Request-Id: a',
  'If-None-Match: "x"',
];
const HOSTS = ['localhost', 'localhost:3333', '[::1]', '[::1]:80', 'elsewhere.test', '', 'LOCALHOST', ':80'];
const METHODS = ['GET', 'GET', 'GET', 'GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'];
const TEXTS = [
  '%',
  '%2e',
  '%61',
  '/',
  '//',
  '..',
  '.',
  '~',
  ':',
  '*',
  '-',
  '_',
  'a',
  '%c3%a9',
  '.ts',
  'seg_',
  '%2F',
  '\\',
  '"',
];

/** A path with one change or more. */
function changed(random: Random, path: string): string {
  let text = path;
  do {
    const at = random.below(text.length + 1);
    const cut = random.chance(0.5) ? random.below(4) : 0;
    text = `/${(text.slice(0, at) + (random.chance(0.7) ? random.pick(TEXTS) : '') + text.slice(at + cut)).replace(/^\/+/, random.chance(0.1) ? '/' : '')}`;
  } while (random.chance(0.3));
  return text;
}

function request(random: Random, paths: readonly string[]): string {
  const path = random.pick(paths);
  const lines = [
    `${random.pick(METHODS)} ${random.chance(0.5) ? path : changed(random, path)}${random.chance(0.5) ? '' : random.pick(QUERIES)} HTTP/1.1`,
    `Host: ${random.chance(0.7) ? 'localhost' : random.pick(HOSTS)}`,
  ];
  const headers = new Set(Array.from({ length: random.below(4) }, () => random.pick(HEADERS)));
  lines.push(...headers);
  return lines.map((line) => `${line}\r\n`).join('');
}

test('children are answered alike with and without the router: 10,000 requests, hostile ones among them', async (t) => {
  const { advance, direct, routed, publishers, application, app } = await open(t);
  advance(0, 9);
  // a master playlist has a token of its own in each answer
  const paths = ['/app/other/llhls.m3u8', '/'];
  for (const master of ['/app/stream/llhls.m3u8', '/app/stream/ts:playlist.m3u8']) {
    const { body } = await app.inject(master);
    const lists = urisOf(body, master);
    paths.push(...lists);
    for (const list of lists) paths.push(...urisOf((await app.inject(list)).body, list));
  }
  // a request that waits would hold up those behind it
  for (const publisher of publishers) publisher.live(application, 'stream')?.stream.conclude(true);
  const random = new Random(33);
  const statuses = new Set<string>();
  for (let count = 0; count < REQUESTS; count += AT_ONCE) {
    const requests = Array.from({ length: AT_ONCE }, () => request(random, paths));
    const [one, other] = await Promise.all([ask(direct, requests), ask(routed, requests)]);
    for (const [index, asked] of requests.entries()) {
      if (JSON.stringify(one[index]) !== JSON.stringify(other[index])) t.deepEqual(one[index], other[index], asked);
      statuses.add(one[index]?.status ?? '');
    }
  }
  t.deepEqual([...statuses].map((status) => status.split(' ')[1]).sort(), [
    '200',
    '206',
    '400',
    '401',
    '404',
    '415',
    '416',
  ]);
});
