import { once } from 'node:events';
import { truncateSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { accessDenied, Denial } from '../../../src/access/denial.ts';
import { signUrl } from '../../../src/access/policy/sign.ts';
import { placedTracks, shownSamples } from '../../support/media/mp4-samples.ts';
import { openPlayback } from '../../support/playback/recorded.ts';
import { until } from '../../support/time/until.ts';

const AT = 'start=2026-03-05T12:00:01.5Z&duration=2';
const CLIP = `/app/stream/get?${AT}`;
const MP4 = `${CLIP}&format=mp4`;
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 's',
  algorithm: 'sha1',
} as const;
const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });

/** Seconds of video that a file shows, and its first frame's. */
function videoIn(file: Buffer) {
  const video = placedTracks(file).find(({ type }) => type === 'video');
  const shown = video === undefined ? [] : shownSamples(video);
  return { frames: shown.length, first: shown[0]?.time };
}

test('a clip is sent as fragmented MP4, cut to the frame', async (t) => {
  const { get, recordMp4, registry } = await openPlayback(t);
  await recordMp4(0, 5);
  const answer = await get(CLIP);
  t.is(answer.statusCode, 200);
  t.is(answer.headers['content-type'], 'video/mp4');
  t.is(answer.headers['content-length'], undefined);
  t.is(answer.headers['accept-ranges'], undefined);
  t.is(answer.headers['cache-control'], 'no-cache, no-store');
  t.is(videoIn(answer.rawPayload).frames, 60);
  const { counters } = registry.vhost('default').application('app');
  t.deepEqual([counters.publishers.playback, counters.publishersSoFar.playback], [0, 1]);
  t.is(counters.out.totalBytes, answer.rawPayload.length);
  t.is((await get(CLIP, {}, 'HEAD')).rawPayload.length, 0);
});

test('a clip is sent as MP4 with ranges', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  await recordMp4(0, 3);
  await recordMp4(3, 3);
  const whole = await get(MP4);
  const bytes = whole.rawPayload;
  t.is(whole.statusCode, 200);
  t.like(whole.headers, {
    'content-type': 'video/mp4',
    'accept-ranges': 'bytes',
    'content-length': String(bytes.length),
  });
  t.is(videoIn(bytes).frames, 60);
  const etag = String(whole.headers.etag);
  t.regex(etag, /^"[\w-]+"$/);
  const head = await get(MP4, {}, 'HEAD');
  t.deepEqual(
    [head.statusCode, head.headers['content-length'], head.rawPayload.length],
    [200, String(bytes.length), 0],
  );
  for (const [range, first, last] of [
    ['bytes=0-0', 0, 0],
    ['bytes=100-', 100, bytes.length - 1],
    ['bytes=-10', bytes.length - 10, bytes.length - 1],
    ['bytes=5-999999999', 5, bytes.length - 1],
  ] as const) {
    const part = await get(MP4, { range });
    t.is(part.statusCode, 206, range);
    t.is(part.headers['content-range'], `bytes ${first}-${last}/${bytes.length}`);
    t.is(part.headers['content-length'], String(last + 1 - first));
    t.deepEqual(part.rawPayload, bytes.subarray(first, last + 1));
    t.is(part.headers.etag, etag);
  }
  for (const range of ['bytes=1-0', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=x']) {
    const answer = await get(MP4, { range });
    t.deepEqual([answer.statusCode, answer.rawPayload.length], [200, bytes.length], range);
  }
  const beyond = await get(MP4, { range: `bytes=${bytes.length}-` });
  t.is(beyond.statusCode, 416);
  t.is(beyond.headers['content-range'], `bytes */${bytes.length}`);
  t.is(beyond.rawPayload.length, 0);
});

test('a range of another file is answered with the whole', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  await recordMp4(0, 5);
  const { etag, 'content-length': length } = (await get(MP4, {}, 'HEAD')).headers;
  const status = async (headers: Record<string, string>) => (await get(MP4, headers)).statusCode;
  t.is(await status({ range: 'bytes=0-9', 'if-range': String(etag) }), 206);
  t.is(await status({ range: 'bytes=0-9', 'if-range': '"other"' }), 200);
  t.is(await status({ range: 'bytes=0-9', 'if-range': `W/${etag}` }), 200);
  t.is(await status({ range: `bytes=${length}-`, 'if-range': '"other"' }), 200);
  const same = await get(MP4, { 'if-none-match': String(etag) });
  t.deepEqual([same.statusCode, same.rawPayload.length, same.headers.etag], [304, 0, etag]);
});

test('a clip ends in front of a break', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  await recordMp4(0, 3);
  await recordMp4(10, 3);
  const answer = await get('/app/stream/get?start=2026-03-05T12:00:02Z&duration=60');
  t.is(videoIn(answer.rawPayload).frames, 30);
  const early = await get('/app/stream/get?start=2026-03-05T11:59:00Z&duration=61');
  t.is(videoIn(early.rawPayload).frames, 30);
});

test('what was not recorded is not found', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  await recordMp4(0, 3);
  for (const query of ['start=2026-03-05T12:00:03Z&duration=5', 'start=2026-03-05T11:00:00Z&duration=5&format=mp4']) {
    const answer = await get(`/app/stream/get?${query}`);
    t.deepEqual([answer.statusCode, answer.json()], [404, error(404, 'There is no recording of this time')]);
  }
  t.is((await get(`/app/other/get?${AT}`)).statusCode, 404);
  t.is((await get(`/off/stream/get?${AT}`)).body, (await get('/off/stream/gets')).body);
});

test('a malformed query of a clip is refused with JSON', async (t) => {
  const { get } = await openPlayback(t);
  for (const query of [
    '',
    AT.replace('duration=2', 'duration=NaN'),
    `${AT}&format=webm`,
    `${AT}&id=1`,
    `${AT}&id=${'0'.repeat(50)}&id=1`,
    `${AT}&${AT}`,
    'start=9999-01-01T00:00:00Z&duration=1',
    'start=2026-03-05T12:00:00Z&duration=1000000000',
    'start=%zz&duration=1',
  ]) {
    const answer = await get(`/app/stream/get?${query}`);
    t.is(answer.statusCode, 400, query);
    t.is(answer.headers['content-type'], 'application/json;charset=UTF-8');
    t.regex(answer.json<{ message: string }>().message, /^\[HTTP\] Invalid query: .* \(400\)$/);
  }
});

test('a clip plays one recorded file of several, and goes on with no other', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  const ids = [await recordMp4(0, 5), await recordMp4(1, 3, { id: 'other' }), await recordMp4(5, 5)];
  const framesOf = async (id: string | undefined, seconds: number, duration: number) => {
    const start = new Date(Date.UTC(2026, 2, 5, 12, 0, seconds)).toISOString();
    const answer = await get(`/app/stream/get?start=${start}&duration=${duration}&format=mp4${id ? `&id=${id}` : ''}`);
    return answer.statusCode === 200 ? videoIn(answer.rawPayload).frames : answer.statusCode;
  };
  t.is(await framesOf(undefined, 0, 10), 300);
  t.is(await framesOf(ids[0], 0, 10), 150);
  t.is(await framesOf(ids[1], 1, 4), 90);
  t.is(await framesOf(ids[2], 0, 10), 150);
  t.is(await framesOf(ids[1], 6, 1), 404);
  t.is(await framesOf(ids[0]?.replace('T12', 'T13'), 0, 10), 404);
});

test('a clip that is saved has a name', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  await recordMp4(0, 5);
  const name = async (url: string) => (await get(url)).headers['content-disposition'];
  t.is(await name(MP4), undefined);
  t.is(await name(`${MP4}&download`), `attachment; filename*=UTF-8''stream_20260305T120001.500Z.mp4`);
  t.is((await get(`${MP4}&download`)).statusCode, 200);
  await recordMp4(10, 5, { stream: `a"'(ä)` });
  const odd = `/app/${encodeURIComponent(`a"'(ä)`)}/get?start=2026-03-05T12:00:10Z&duration=1&download`;
  t.is(await name(odd), `attachment; filename*=UTF-8''a%22%27%28%C3%A4%29_20260305T120010.000Z.mp4`);
});

test('a file that was cut off or is no MP4 is an error, and stays', async (t) => {
  const { get, record, recordMp4, root } = await openPlayback(t);
  await recordMp4(0, 5);
  truncateSync(join(root, '0-.mp4'), 1000);
  const cut = await get(CLIP);
  t.deepEqual([cut.statusCode, cut.json()], [500, error(500, 'Internal error')]);
  await record(60, {}, Buffer.alloc(5000, 1));
  const foreign = await get('/app/stream/get?start=2026-03-05T12:01:00Z&duration=1&format=mp4');
  t.is(foreign.statusCode, 500);
  t.regex(foreign.json<{ message: string }>().message, /The recording cannot be read: the MP4 file is damaged/);
});

test('a signed policy covers start and duration', async (t) => {
  const signedPolicy = { ...SIGNING, enables: { publishers: 'playback' } };
  const { get, recordMp4 } = await openPlayback(t, { vhost: { signedPolicy } });
  await recordMp4(0, 5);
  const origin = 'http://localhost:80';
  const signed = signUrl(`${origin}${CLIP}`, { url_expire: Date.now() + 60_000 }, SIGNING).slice(origin.length);
  t.is((await get(CLIP)).statusCode, 401);
  t.is((await get(signed)).statusCode, 200);
  t.is((await get(signed.replace('duration=2', 'duration=4'))).statusCode, 401);
  t.is((await get(signed.replace('12:00:01.5', '12:00:00.5'))).statusCode, 401);
});

test('clients of recordings without a token are asked for one', async (t) => {
  const wantToken = (): never => {
    throw accessDenied(new Denial('tokenMissing', 'there is no token'));
  };
  const { get } = await openPlayback(t, { admitting: { guards: [wantToken] } });
  const { statusCode, headers } = await get(CLIP);
  t.deepEqual([statusCode, headers['www-authenticate']], [401, 'Bearer realm="Kiln"']);
});

test('a client that leaves ends its request, and others are refused while too many are answered', async (t) => {
  const { app, get, recordMp4, registry } = await openPlayback(t);
  // more than the system buffers for a client
  await recordMp4(0, 120, {}, 6000);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const { counters } = registry.vhost('default').application('app');
  const clients = Array.from({ length: 16 }, () => {
    const client = connect(port, '127.0.0.1');
    client.pause();
    client.write(`GET /app/stream/get?start=2026-03-05T12:00:00Z&duration=120 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return client;
  });
  await until('all are answered', () => counters.publishers.playback === clients.length);
  const busy = await get(CLIP);
  t.deepEqual([busy.statusCode, busy.headers['retry-after']], [503, '1']);
  t.regex(busy.json<{ message: string }>().message, /at most 16 at a time/);
  const closed = clients.map((client) => once(client, 'close'));
  for (const client of clients) client.destroy();
  await Promise.all(closed);
  await until('none is answered any more', () => counters.publishers.playback === 0);
  t.is((await get(CLIP)).statusCode, 200);
});

test('a request for a file is a session that can be ended, and may not return', async (t) => {
  const { app, get, recordMp4, registry } = await openPlayback(t);
  await recordMp4(0, 120, {}, 6000);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const { recordingViewers, counters } = registry.vhost('default').application('app');
  const client = connect(port, '127.0.0.1');
  client.pause();
  const url = '/app/stream/get?start=2026-03-05T12:00:00Z&duration=120&session=me';
  client.write(`GET ${url} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await until('it is sent something', () => (recordingViewers.of('stream')[0]?.out.totalBytes ?? 0) > 0);
  const [session] = recordingViewers.of('stream');
  t.like(session, { id: 'me', kind: 'playback' });
  session?.kick();
  client.resume();
  await once(client, 'close');
  await until('it is not counted any more', () => counters.publishers.playback === 0);
  t.deepEqual(recordingViewers.of('stream'), []);
  t.is((await get(url)).statusCode, 403);
  t.is((await get(`${CLIP}&session=other`)).statusCode, 200);
  const list = '/app/stream/recorded.m3u8?start=2026-03-05T12:00:00Z&duration=5';
  t.is((await get(`${list}&session=me`)).statusCode, 403);
  t.is((await get(list)).statusCode, 200);
});
