import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import type { AccessOptions } from '../../../../src/access/access.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import type { ImageCodec, ImageTrack, Track } from '../../../../src/core/track.ts';
import { LLHLS } from '../../../../src/publishers/hls/ll/index.ts';
import { PlaylistPublisher } from '../../../../src/publishers/hls/publisher.ts';
import { ThumbnailPublisher, type ThumbnailPublisherOptions } from '../../../../src/publishers/thumbnail/index.ts';
import { pagesRoutes } from '../../../../src/web/pages.ts';
import { askedByHand, notedSessions, WEBHOOK_SESSION } from '../../../support/access/access.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { createVhost } from '../../../support/api/api.ts';
import { videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

interface Setup {
  /** As in the management API. */
  readonly thumbnail?: object;
  readonly vhost?: object;
  readonly crossDomains?: ThumbnailPublisherOptions['crossDomains'];
  /** What it lets viewers in with. */
  readonly admitting?: Partial<AccessOptions>;
}

/** An application `app` with thumbnails, and one without, behind HTTP that others share. */
async function open(t: ExecutionContext, { thumbnail = {}, vhost, crossDomains, admitting }: Setup = {}) {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['localhost', 'live.example'] },
    applications: [
      { name: 'app', type: 'live', publishers: { thumbnail, llhls: {} } },
      { name: 'off', type: 'live', publishers: { llhls: {} } },
    ],
    ...vhost,
  });
  const { cluster, access, directory, tree, calls, sessionNames, redirects, quality, live } = await aloneWith(
    registry,
    admitting,
  );
  const publisher = new ThumbnailPublisher({ registry, access, directory, calls, crossDomains });
  const llhls = new PlaylistPublisher(LLHLS, {
    registry,
    cluster,
    access,
    directory,
    tree,
    calls,
    sessionNames,
    redirects,
    quality,
    log: pino({ level: 'silent' }),
    tokenKeys: [Buffer.alloc(32)],
  });
  // files are read in real time, whatever the time of the test is
  const app = Fastify({ pluginTimeout: 0 });
  for (const routes of [llhls.routes, publisher.routes, pagesRoutes({ registry, live, serves: ['llhls'] })])
    await app.register(routes);
  t.teardown(async () => {
    registry.close('the test is over');
    await llhls.close();
    publisher.close();
    await app.close();
  });
  const goLive = (tracks: readonly Track[], { name = 'stream', application = 'app', announced = true } = {}) => {
    const owner = registry.vhost('default').application(application);
    const input = owner.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks([videoTrack()]);
    const output = owner.addOutput(input, name);
    output.setTracks(tracks);
    if (announced) owner.announce(output);
    return output;
  };
  const get = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' | 'OPTIONS' = 'GET') =>
    app.inject({ method, url, headers });
  return { registry, publisher, app, goLive, get };
}

function imageTrack(id: number, codec: ImageCodec): ImageTrack {
  return {
    id,
    name: `image_${id}`,
    type: 'image',
    codec,
    timebase: VIDEO_TIMEBASE,
    bypass: false,
    width: 320,
    height: 180,
    bitrate: 0,
    framerate: 1,
    keyFrameInterval: 0,
  };
}

const picture = (track: Track, text: string) => ({
  track,
  dts: 0,
  pts: 0,
  duration: 0,
  key: true,
  data: Buffer.from(text),
});
const CODECS = ['JPEG', 'PNG', 'WEBP', 'AVIF'] as const;
const TYPES = { jpg: 'image/jpeg', jpeg: 'image/jpeg', png: 'image/png', webp: 'image/webp', avif: 'image/avif' };

test('the newest thumbnail of each codec is served with its type, and not to be cached', async (t) => {
  const { goLive, get } = await open(t);
  const tracks = CODECS.map((codec, id) => imageTrack(id, codec));
  const output = goLive([...tracks, videoTrack({ id: 9 })]);
  for (const round of ['first', 'second']) {
    for (const track of tracks) output.write(picture(track, `${round} ${track.codec}`));
    for (const packet of videoPackets(videoTrack({ id: 9 }), { to: 0.1 })) output.write(packet);
    for (const [extension, type] of Object.entries(TYPES)) {
      const answer = await get(`/app/stream/thumb.${extension}`);
      t.is(answer.statusCode, 200);
      t.is(answer.body, `${round} ${extension === 'jpg' ? 'JPEG' : extension.toUpperCase()}`);
      t.is(answer.headers['content-type'], type);
      t.is(answer.headers['content-length'], String(answer.rawPayload.length));
      t.is(answer.headers['cache-control'], 'no-cache, no-store');
    }
  }
});

test.serial('DelayBufferTimeMs: a picture is shown later', async (t) => {
  virtualTime(t);
  const { goLive, get } = await open(t, { thumbnail: { delayBufferTimeMs: 15_000 } });
  const track = imageTrack(0, 'PNG');
  goLive([track]).write(picture(track, 'late'));
  await delay(4000);
  t.like(await get('/app/stream/thumb.png'), { statusCode: 404, body: 'There is no thumbnail image' });
  t.is((await get('/app/stream/thumb.png')).body, 'late');
});

test('a viewer who comes before the first picture gets it', async (t) => {
  const { goLive, get } = await open(t);
  const track = imageTrack(0, 'PNG');
  const output = goLive([track]);
  const answers = ['GET', 'HEAD'].map((method) => get('/app/stream/thumb.png', {}, method as 'GET'));
  t.is((await get('/app/stream/thumb.jpg')).body, 'There is no thumbnail image', 'no track makes one');
  output.write(picture(track, 'first'));
  t.deepEqual(
    (await Promise.all(answers)).map(({ statusCode, body }) => [statusCode, body]),
    [
      [200, 'first'],
      [200, ''],
    ],
  );
});

test('nobody waits for a picture of a stream that ends', async (t) => {
  const { goLive, get } = await open(t);
  const output = goLive([imageTrack(0, 'PNG')]);
  const answer = get('/app/stream/thumb.png');
  await get('/app/stream/thumb.jpg');
  output.input.close('over');
  t.is((await answer).statusCode, 404);
});

test('a request for a thumbnail wakes an encoder that rests, so that the next one is new', async (t) => {
  const { goLive, get } = await open(t);
  const track = imageTrack(0, 'PNG');
  const output = goLive([track]);
  output.write(picture(track, 'old'));
  let wanted = 0;
  output.on('wanted', () => wanted++);
  await get('/app/stream/thumb.png');
  output.setResting(true);
  t.is((await get('/app/stream/thumb.png')).body, 'old');
  t.is(wanted, 1);
});

test('HEAD has the headers of GET and no body', async (t) => {
  const { goLive, get } = await open(t);
  const track = imageTrack(0, 'PNG');
  goLive([track]).write(picture(track, 'picture'));
  const { body, headers, statusCode } = await get('/app/stream/thumb.png', {}, 'HEAD');
  t.deepEqual([statusCode, body, headers['content-length'], headers['content-type']], [200, '', '7', 'image/png']);
});

test('a missing thumbnail is answered 404 with the reason, in the words of the interface', async (t) => {
  const { goLive, get } = await open(t);
  goLive([imageTrack(0, 'PNG'), videoTrack({ id: 1 })]);
  goLive([imageTrack(0, 'PNG')], { name: 'stream', application: 'off' });
  for (const [url, why] of [
    ['/app/nobody/thumb.png', 'There is no stream or cannot pull a stream'],
    ['/nowhere/stream/thumb.png', 'There is no stream or cannot pull a stream'],
    ['/off/stream/thumb.png', 'There is no stream or cannot pull a stream'],
    ['/app/stream/thumb.jpg', 'There is no thumbnail image'],
    ['/app/stream/thumb.gif', 'Unsupported file extension'],
    ['/app/stream/thumb.PNG', 'Unsupported file extension'],
    ['/app/stream/thumb.png.gif', 'Unsupported file extension'],
    ['/app/stream/thumb.%2e%2e', 'Unsupported file extension'],
    ['/app/stream/thumb.constructor', 'Unsupported file extension'],
  ] as const) {
    const answer = await get(url);
    t.like(answer, { statusCode: 404, body: why }, url);
    t.is(answer.headers['cache-control'], 'no-cache, no-store');
  }
  t.is((await get('/app/stream/thumb.png', { host: 'elsewhere.example' })).statusCode, 404);
  for (const url of ['/app/stream/thumb', '/app/stream/thumb.', '/app/stream/thumbs.png', '/app/thumb.png/x']) {
    t.is((await get(url)).statusCode, 404, url);
  }
});

test('names that need escaping, and the virtual host by Host', async (t) => {
  const { goLive, get } = await open(t);
  const track = imageTrack(0, 'PNG');
  const name = 'ä b%"<.png';
  goLive([track], { name }).write(picture(track, 'picture'));
  const url = `/app/${encodeURIComponent(name)}/thumb.png?at=now`;
  t.like(await get(url), { statusCode: 200, body: 'picture' });
  t.is((await get(url, { host: 'live.example:3333' })).statusCode, 200);
  t.is((await get(url, { host: 'other.example' })).statusCode, 404);
});

test('the first of several tracks of one codec that has an image is served', async (t) => {
  const { goLive, get } = await open(t);
  const [small, large] = [imageTrack(3, 'JPEG'), imageTrack(1, 'JPEG')];
  const output = goLive([small, large]);
  output.write(picture(large, 'large'));
  t.is((await get('/app/stream/thumb.jpg')).body, 'large');
  output.write(picture(small, 'small'));
  t.is((await get('/app/stream/thumb.jpg')).body, 'small');
  output.setTracks([large]);
  t.is((await get('/app/stream/thumb.jpg')).body, 'large');
  output.setTracks([small]);
  const answer = get('/app/stream/thumb.jpg');
  await get('/app/stream/thumb.png');
  output.write(picture(small, 'new'));
  t.is((await answer).body, 'new');
});

test('a stream that ends takes its pictures with it', async (t) => {
  const { goLive, get } = await open(t);
  const track = imageTrack(0, 'PNG');
  const output = goLive([track]);
  output.write(picture(track, 'picture'));
  output.input.close('done');
  t.is((await get('/app/stream/thumb.png')).statusCode, 404);
});

test('a thumbnail request without a signed URL gets 401, before it learns of the stream', async (t) => {
  const signedPolicy = {
    policyQueryKeyName: 'p',
    signatureQueryKeyName: 's',
    secretKey: 'k',
    enables: { publishers: 'webrtc,Thumbnail' },
  };
  const { goLive, get } = await open(t, { vhost: { signedPolicy } });
  const track = imageTrack(0, 'PNG');
  goLive([track]).write(picture(track, 'picture'));
  for (const url of ['/app/stream/thumb.png', '/app/nobody/thumb.png', '/app/stream/thumb.gif']) {
    const { statusCode, body } = await get(url);
    t.is(statusCode, 401);
    t.is(body, 'Access denied');
  }
});

test('CrossDomains of the publisher, else those of all, apply to errors too', async (t) => {
  const own = { url: ['https://own.example'] };
  const shared = { url: ['https://shared.example'], header: [{ key: 'x-own', value: 'yes' }] };
  for (const [thumbnail, origin] of [
    [{ crossDomains: own }, 'https://own.example'],
    [{}, 'https://shared.example'],
  ] as const) {
    const { get } = await open(t, { thumbnail, crossDomains: shared });
    for (const method of ['GET', 'HEAD', 'OPTIONS'] as const) {
      t.is((await get('/app/nobody/thumb.png', { origin }, method)).headers['access-control-allow-origin'], origin);
      t.is(
        (await get('/app/nobody/thumb.png', { origin: 'https://x.example' }, method)).headers[
          'access-control-allow-origin'
        ],
        undefined,
      );
    }
  }
  const { get } = await open(t);
  const preflight = await get('/app/stream/thumb.png', { origin: 'https://own.example' }, 'OPTIONS');
  t.is(preflight.statusCode, 200);
  t.is(preflight.headers['access-control-allow-private-network'], 'true');
  t.is(preflight.headers['access-control-allow-origin'], undefined);
});

test('a playlist called thumb stays with LL-HLS, and the player page with its own', async (t) => {
  const { goLive, get } = await open(t);
  goLive([imageTrack(0, 'PNG'), videoTrack({ id: 1 })]);
  t.is((await get('/app/stream/thumb.m3u8')).body, 'Could not find the file');
  t.is((await get('/app/stream/thumb.m4s')).body, 'Could not find the file');
  t.regex((await get('/app/thumb.png')).body, /<!doctype html>/);
});

test('bytes are counted, a connection only while its answer is on the way, and no more than MaxConnection', async (t) => {
  const { goLive, get, app, registry } = await open(t, { thumbnail: { maxConnection: 1 } });
  const track = imageTrack(0, 'PNG');
  const output = goLive([track]);
  const size = 32 * 1024 * 1024;
  output.write(picture(track, 'x'.repeat(size)));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  socket.pause();
  socket.write('GET /app/stream/thumb.png HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(app.server, 'request');
  const { counters } = registry.vhost('default').application('app');
  await until('it is answered', () => counters.publishers.thumbnail === 1);
  t.is(output.sessions.size, 0);
  const refused = await get('/app/stream/thumb.png');
  t.is(refused.statusCode, 503);
  t.is(refused.headers['retry-after'], '1');
  let received = 0;
  socket.on('data', (data) => (received += data.length)).resume();
  await until('all of it', () => received > size);
  await until('it is counted', () => counters.out.totalBytes === size);
  socket.destroy();
  await until('the connection is gone', () => counters.publishers.thumbnail === 0);
  t.is(counters.totalConnections, 0);
  t.is(counters.maxTotalConnections, 1);
});

test('guards are asked once for each request, and hear when it is answered', async (t) => {
  const ends: string[] = [];
  let asked = 0;
  const admitting: Partial<AccessOptions> = {
    guards: [
      () => async () => {
        asked++;
        return { session: WEBHOOK_SESSION };
      },
    ],
    webhookSessions: notedSessions(ends),
  };
  const { goLive, app } = await open(t, { admitting });
  const track = imageTrack(0, 'PNG');
  goLive([track]).write(picture(track, 'picture'));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://localhost:${(app.server.address() as AddressInfo).port}/app`;
  const request = async (path: string, method: string) => {
    const response = await fetch(url + path, { method });
    await response.text();
    return response.status;
  };
  t.is(await request('/stream/thumb.png', 'GET'), 200);
  t.is(await request('/stream/thumb.png', 'HEAD'), 200);
  await until('both have ended', () => ends.length === 2);
  t.is(await request('/nobody/thumb.png', 'GET'), 404);
  t.is(await request('/stream/thumb.png', 'OPTIONS'), 200);
  t.is(asked, 3);
  t.deepEqual(ends.slice(0, 2), ['the thumbnail was sent', 'the thumbnail was sent']);
  t.is(ends.length, 3);
});

test('a client that leaves before a guard has answered is noticed, and what is opened later is closed', async (t) => {
  const ends: string[] = [];
  const { guard, questions } = askedByHand();
  const { goLive, app } = await open(t, { admitting: { guards: [guard], webhookSessions: notedSessions(ends) } });
  const track = imageTrack(0, 'PNG');
  goLive([track]).write(picture(track, 'picture'));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const gone = new AbortController();
  const { port } = app.server.address() as AddressInfo;
  const answer = t.throwsAsync(fetch(`http://localhost:${port}/app/stream/thumb.png`, { signal: gone.signal }));
  const question = await until('the question', () => questions[0]);
  gone.abort();
  await answer;
  await until('its question ends', () => question.signal?.aborted);
  t.deepEqual(ends, []);
  question.admit();
  await until('what it opened is closed', () => ends.length === 1);
});
