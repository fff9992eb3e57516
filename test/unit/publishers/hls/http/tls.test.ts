import { once } from 'node:events';
import { constants } from 'node:http2';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { openClient, openSession, openTls, PROTOCOLS, type Client } from '../../../../support/network/http-client.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../../support/media/packets.ts';
import { openTlsPort } from '../../../../support/network/tls-port.ts';
import { inPlace } from '../../../../support/hls/playlist-uris.ts';
import { until } from '../../../../support/time/until.ts';

const MASTER = '/app/stream/llhls.m3u8';
const VIDEO = videoTrack();
const AUDIO = audioTrack();

async function live(t: ExecutionContext) {
  const server = await openLlhls(t, { llhls: { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 } });
  const { output } = server.goLive([VIDEO, AUDIO]);
  let from = 0;
  const advance = (to: number): void => {
    const span = { from, to, gop: 60 };
    for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
    from = to;
  };
  return { output, advance, number: await openTlsPort(t, server.publisher.routes) };
}

async function text(client: Client, url: string): Promise<string> {
  return (await client.call(url)).body.toString();
}

/** The picture's chunklist, as its master playlist names it. */
async function chunklistOf(client: Client): Promise<string> {
  const names = [...(await text(client, MASTER)).matchAll(/^([^#\n].*)$/gm)].map(([, name]) => name as string);
  return inPlace(names[0] as string, MASTER);
}

/** The path that a playlist means by a name in it. */
const from = (playlist: string, name: string | undefined): string =>
  new URL(name ?? '', `https://localhost${playlist}`).pathname;
const newestSegment = (list: string) => [...list.matchAll(/^([^#\n]+)$/gm)].at(-1)?.[1];

test('playlists, segments, ranges, HEAD and gzip are the same in both versions of HTTP', async (t) => {
  const { number, advance } = await live(t);
  advance(5);
  const answers = await Promise.all(
    PROTOCOLS.map(async (protocol) => {
      const client = await openClient(t, protocol, number);
      const chunklist = await chunklistOf(client);
      const list = await text(client, chunklist);
      const segment = from(chunklist, newestSegment(list));
      const part = from(chunklist, /#EXT-X-PART:.*URI="([^"]+)"/.exec(list)?.[1]);
      const zipped = await client.call(chunklist, { headers: { 'accept-encoding': 'gzip' } });
      t.is(zipped.headers['content-encoding'], 'gzip');
      const whole = await client.call(segment);
      const range = await client.call(segment, { headers: { range: 'bytes=100-199' } });
      t.deepEqual(range.body, whole.body.subarray(100, 200));
      const beyond = await client.call(segment, { headers: { range: 'bytes=99999999-' } });
      const head = await client.call(segment, { method: 'HEAD' });
      t.is(head.body.length, 0);
      t.is(Number(head.headers['content-length']), whole.body.length);
      const options = await client.call(segment, { method: 'OPTIONS', headers: { origin: 'https://a.example' } });
      const missing = await client.call('/app/stream/none.m4s');
      t.true(whole.body.length > 1000);
      return [zipped, whole, range, beyond, head, options, missing, await client.call(part)].map((answer) => ({
        status: answer.status,
        range: answer.headers['content-range'],
        length: answer.headers['content-length'],
        type: answer.headers['content-type'],
        cache: answer.headers['cache-control'],
        vary: answer.headers.vary,
        body: answer.headers['content-encoding'] === 'gzip' ? undefined : answer.body.toString('base64'),
        list: answer.headers['content-encoding'] === 'gzip' ? gunzipSync(answer.body).toString() : undefined,
      }));
    }),
  );
  t.deepEqual(
    answers[0]?.map(({ status }) => status),
    [200, 200, 206, 416, 200, 200, 404, 200],
  );
  const stable = (list: (typeof answers)[number] | undefined) =>
    list?.map((answer) => ({ ...answer, length: answer.list ? '' : answer.length }));
  t.deepEqual(stable(answers[1]), stable(answers[0]));
});

test('blocked requests of one HTTP/2 connection are answered together, when their part is there', async (t) => {
  const { number, advance } = await live(t);
  advance(5);
  const client = await openClient(t, 'h2', number);
  const chunklist = await chunklistOf(client);
  const list = await text(client, chunklist);
  const next = Number(/MEDIA-SEQUENCE:(\d+)/.exec(list)?.[1]) + list.split('#EXTINF').length - 1;
  const parts = list.slice(list.lastIndexOf('#EXTINF')).split('#EXT-X-PART:').length - 1;
  const hint = /PRELOAD-HINT.*URI="([^"]+)"/.exec(list)?.[1] as string;
  let answered = 0;
  const blocked = [`${chunklist}?_HLS_msn=${next}&_HLS_part=${parts}`, from(chunklist, hint)].map(async (url) => {
    const answer = await client.call(url);
    answered++;
    return answer;
  });
  t.is((await client.call(MASTER)).status, 200, 'what is there is answered meanwhile');
  t.is(answered, 0);
  advance(6);
  const [playlist, media] = await Promise.all(blocked);
  t.true(playlist?.body.toString().includes(hint));
  t.is(media?.status, 200);
  t.true((media?.body.length ?? 0) > 100);
});

test('a viewer who takes back a blocked request frees its place, and what was not sent is not counted', async (t) => {
  const { number, advance, output } = await live(t);
  advance(5);
  const client = await openClient(t, 'h2', number);
  const chunklist = await chunklistOf(client);
  const list = await text(client, chunklist);
  const hint = /PRELOAD-HINT.*URI="([^"]+)"/.exec(list)?.[1] as string;
  const session = openSession(t, await openTls(t, number, { ALPNProtocols: ['h2'] }));
  const first = await client.call(chunklist);
  await until('what went out is counted', () => output.counters.out.totalBytes > 2 * first.body.length);
  const before = output.counters.out.totalBytes;
  for (let round = 0; round < 2; round++) {
    const streams = Array.from({ length: 50 }, () => session.request({ ':path': from(chunklist, hint) }));
    let answered = 0;
    for (const stream of streams) stream.on('error', () => {}).on('response', () => answered++);
    // both sides have spoken since: the requests are there
    await new Promise((resolve) => session.ping(resolve));
    t.is(answered, 0);
    const closed = streams.map((stream) => once(stream, 'close'));
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
    await Promise.all(closed);
    await new Promise((resolve) => session.ping(resolve));
  }
  advance(6);
  const segment = from(chunklist, newestSegment(list));
  const slow = openSession(t, await openTls(t, number, { ALPNProtocols: ['h2'] }), 'localhost', {
    initialWindowSize: 100,
  });
  const stuck = slow.request({ ':path': segment }).on('error', () => {});
  await once(stuck, 'response');
  stuck.close(constants.NGHTTP2_CANCEL);
  await once(stuck, 'close');
  await new Promise((resolve) => slow.ping(resolve));
  const { body } = await client.call(segment);
  await until('the segment is counted', () => output.counters.out.totalBytes >= before + body.length);
  t.is(output.counters.out.totalBytes, before + body.length);
});
