import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { Flow } from '../../../../../src/core/counters.ts';
import type { OutputStream } from '../../../../../src/core/output-stream.ts';
import type { Playlist } from '../../../../../src/core/playlist.ts';
import { parseFragment } from '../../../../support/media/boxes.ts';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { inPlace } from '../../../../support/hls/playlist-uris.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../../support/media/packets.ts';

const MASTER = '/app/stream/llhls.m3u8';
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** A stream of picture and sound and a function that brings it on to a media time, in seconds. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}, gop?: number) {
  const server = await openLlhls(t, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const { input, output } = server.goLive([VIDEO, AUDIO]);
  return { ...server, input, output, advance: feeder(output, gop) };
}

function feeder(output: OutputStream, gop = 60) {
  let from = 0;
  return (to: number) => {
    const span = { from, to, gop };
    for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
    from = to;
  };
}

function uris(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, uri]) => uri as string);
}

const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;

/** An answer that is not there yet, and whether it has come. */
function pending<T>(promise: Promise<T>): { done: boolean; promise: Promise<T> } {
  const state = { done: false, promise };
  void promise.then(() => (state.done = true));
  return state;
}

const turns = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test('unknown host, application, stream, file: 404', async (t) => {
  const { get, advance, children } = await live(t, { vhost: { host: { names: ['localhost'] } } });
  advance(3);
  t.is((await get('/other/stream/llhls.m3u8')).statusCode, 404);
  t.is((await get('/app/other/llhls.m3u8')).statusCode, 404);
  t.is((await get('/app/stream/other.m3u8')).statusCode, 404);
  t.is((await get('/app/stream/other.m4s')).statusCode, 404);
  t.is((await get('/app/stream/other.jpg')).statusCode, 404);
  t.is((await get(MASTER, { host: 'elsewhere.example' })).statusCode, 404);
  const [audio = ''] = await children();
  t.is((await get(sibling(audio, 'seg_0_99_video_key_llhls.m4s'))).statusCode, 404);
  const missing = await get('/app/other/llhls.m3u8');
  t.is(missing.headers['cache-control'], 'no-cache, no-store');
});

test('an application without LL-HLS: 404', async (t) => {
  const { get, advance } = await live(t, {
    vhost: { applications: [{ name: 'app', type: 'live' }] },
  });
  advance(3);
  t.is((await get(MASTER)).statusCode, 404);
});

test.serial('a master playlist is held until every track has its first part', async (t) => {
  virtualTime(t);
  const { get, output, app, publisher } = await live(t);
  const held = [pending(get(MASTER)), pending(app.inject({ method: 'HEAD', url: MASTER }))];
  for (const packet of videoPackets(VIDEO, { to: 1 })) output.write(packet);
  held.push(pending(get(MASTER)));
  await delay(4000);
  t.deepEqual(
    held.map(({ done }) => done),
    [false, false, false],
  );
  t.is(publisher.waiting, 3);
  for (const packet of audioPackets(AUDIO, { to: 1 })) output.write(packet);
  for (const { promise } of held) t.is((await promise).statusCode, 200);
  t.is(publisher.waiting, 0);
  t.is((await get(MASTER)).statusCode, 200);
});

test.serial('a master playlist of which nothing comes in ten seconds: 201 without a body', async (t) => {
  virtualTime(t);
  const { get, advance } = await live(t);
  const early = pending(get(MASTER));
  await delay(5000);
  const late = pending(get(MASTER));
  await delay(4500);
  t.false(early.done);
  t.like(await early.promise, { statusCode: 201, body: '' });
  t.false(late.done);
  advance(1);
  t.is((await late.promise).statusCode, 200);
});

test.serial(
  'a viewer of a stream that is starting is held no longer in all than one of a stream that has started',
  async (t) => {
    virtualTime(t);
    const { application, get } = await openLlhls(t, { llhls: LLHLS });
    const input = application.publish('stream', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    const asked = pending(get(MASTER));
    await delay(8000);
    input.setTracks([VIDEO]);
    const output = application.addOutput(input, 'stream');
    output.setTracks([VIDEO]);
    application.announce(output);
    await delay(1500);
    t.false(asked.done);
    await delay(1500);
    t.true(asked.done);
    t.like(await asked.promise, { statusCode: 201, body: '' });
  },
);

test('a request held for a master playlist is answered when the stream goes before it has begun', async (t) => {
  const { get, input, publisher } = await live(t);
  const held = get(MASTER);
  await until('it is held', () => publisher.waiting === 1);
  input.continuity.end();
  input.close('the test ends it');
  t.is((await held).statusCode, 404);
});

test.serial('DelayBufferTimeMs: everything comes later', async (t) => {
  virtualTime(t);
  const { get, advance } = await live(t, { llhls: { delayBufferTimeMs: 10_000 } });
  advance(3.1);
  const held = pending(get(MASTER));
  await delay(9000);
  t.false(held.done);
  t.is((await held.promise).statusCode, 200);
});

test('the master playlist names picture and sound apart, as hls-parser reads it', async (t) => {
  const { get, advance } = await live(t);
  advance(5);
  const answer = await get(MASTER);
  t.is(answer.headers['content-type'], 'application/vnd.apple.mpegurl');
  t.is(answer.headers['cache-control'], 'no-cache, no-store');
  HLS.setOptions({ strictMode: true });
  const master = HLS.parse(answer.body);
  if (!master.isMasterPlaylist) return t.fail();
  t.is(master.version, 6);
  t.true(master.independentSegments);
  t.is(master.variants.length, 1);
  const [variant] = master.variants;
  t.deepEqual(variant?.resolution, { width: 640, height: 360 });
  t.is(variant?.frameRate, 30);
  t.is(variant?.codecs, 'avc1.42c01e,mp4a.40.2');
  t.true((variant?.bandwidth ?? 0) >= (variant?.averageBandwidth ?? Infinity));
  t.is(variant?.audio[0]?.channels, '2');
  t.regex(variant?.uri ?? '', /^[\w-]{80}\/chunklist_0_video_\w{8}_llhls\.m3u8$/);
  t.regex(variant?.audio[0]?.uri ?? '', /^[\w-]{80}\/chunklist_1_audio_\w{8}_llhls\.m3u8$/);
});

test('all files that a chunklist names exist, and a segment is the sum of its parts', async (t) => {
  const { get, advance, children } = await live(t);
  advance(7.6);
  for (const url of await children()) {
    const { body: text, statusCode } = await get(url);
    t.is(statusCode, 200);
    HLS.setOptions({ strictMode: true });
    t.notThrows(() => HLS.parse(text));
    const [init = ''] = uris(text, /EXT-X-MAP:URI="([^"]+)"/g);
    const type = url.includes('video') ? 'video/mp4' : 'audio/mp4';
    t.like(await get(sibling(url, init)), { statusCode: 200 });
    for (const segment of uris(text, /^(seg_.*)$/gm)) {
      const answer = await get(sibling(url, segment));
      t.is(answer.headers['content-type'], type);
      t.is(answer.headers['cache-control'], undefined);
      const msn = segment.split('_')[2];
      const parts = uris(text, new RegExp(`EXT-X-PART:.*URI="(part_\\d_${msn}_[^"]+)"`, 'g'));
      const bodies = await Promise.all(parts.map(async (part) => (await get(sibling(url, part))).rawPayload));
      if (parts.length > 0) t.deepEqual(answer.rawPayload, Buffer.concat(bodies));
      for (const body of bodies) t.notThrows(() => parseFragment(body));
    }
  }
});

test('segments that left the window are gone, one segment later', async (t) => {
  const { get, advance, children } = await live(t);
  advance(2.6);
  const url = (await children())[1] as string;
  const [first = ''] = uris((await get(url)).body, /^(seg_.*)$/gm);
  advance(8.6);
  t.is((await get(sibling(url, first))).statusCode, 200);
  advance(10.6);
  t.is((await get(sibling(url, first))).statusCode, 404);
});

test('a child without a token, or with a wrong one: 401 and no body', async (t) => {
  const { get, advance, children, goLive } = await live(t);
  advance(3);
  const url = (await children())[1] as string;
  const [, app, stream, token = '', file] = url.split('/');
  t.like(await get(`/${app}/${stream}/${file}`), { statusCode: 401, body: '' });
  t.like(await get(url.replace(token, 'x'.repeat(40))), { statusCode: 401, body: '' });
  t.like(await get(url.replace(token, 'short')), { statusCode: 401, body: '' });
  goLive([VIDEO], 'another');
  t.is((await get(`/app/another/${token}/${file}`)).statusCode, 401);
  t.is((await get(url)).statusCode, 200);
});

test('a master playlist without a signed URL: 401', async (t) => {
  const signedPolicy = {
    policyQueryKeyName: 'p',
    signatureQueryKeyName: 's',
    secretKey: 'k',
    enables: { publishers: 'webrtc,LLHLS' },
  };
  const { get, advance } = await live(t, { vhost: { signedPolicy } });
  advance(3);
  t.like(await get(MASTER), { statusCode: 401, body: '' });
  t.like(await get('/app/other/llhls.m3u8'), { statusCode: 401, body: '' }, 'which streams there are is not told');
});

test.serial('a chunklist request is held until the part exists', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  t.is((await get(`${url}?_HLS_msn=1&_HLS_part=1`)).statusCode, 200);
  const held = pending(get(`${url}?_HLS_msn=1&_HLS_part=2`));
  await turns();
  t.false(held.done);
  advance(3.5);
  const answer = await held.promise;
  t.is(answer.statusCode, 200);
  t.regex(answer.body, /part_0_1_2_video/);
  t.is(answer.headers['cache-control'], 'max-age=60');
});

test('a chunklist may be kept by caches where it ends with what was named, and is that of the moment otherwise', async (t) => {
  const cacheControl = { chunklistMaxAge: 2, chunklistWithDirectivesMaxAge: 7 };
  const { get, advance, children } = await live(t, { llhls: { cacheControl } });
  advance(3.1);
  const url = (await children())[1] as string;
  const age = async (query: string) => (await get(`${url}${query}`)).headers['cache-control'];
  t.is(await age(''), 'max-age=2');
  t.is(await age('?_HLS_msn=1&_HLS_part=1'), 'max-age=7');
  t.is(await age('?_HLS_msn=0'), 'max-age=7');
  t.is(await age('?_HLS_msn=1&_HLS_part=0'), 'max-age=2');
  t.is(await age('?_HLS_msn=0&_HLS_part=3'), 'max-age=2');
  advance(4.1);
  t.is(await age('?_HLS_msn=1'), 'max-age=7');
  // what video.js asks with when it has the whole of the last segment and nothing of the next
  for (const part of [0, 3]) t.is(await age(`?_HLS_msn=1&_HLS_part=${part}`), 'max-age=2');
  advance(4.6);
  t.is(await age('?_HLS_msn=1&_HLS_part=4'), 'max-age=7', 'part 0 of the next segment is meant');
  advance(5.1);
  t.is(await age('?_HLS_msn=1&_HLS_part=4'), 'max-age=2');
});

test.serial('a request without directives waits for the first complete segment: players start with one', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t, { llhls: { segmentDuration: 6, segmentCount: 5 } }, 30);
  advance(0.6);
  const url = (await children())[1] as string;
  const held = pending(get(url));
  await turns();
  t.false(held.done);
  advance(1.1);
  t.deepEqual(uris((await held.promise).body, /^#EXTINF:(.*),$/gm), ['1.000000']);
  advance(12.1);
  const lasted = ['1.000000', '1.000000', '2.000000', '3.000000', '5.000000'];
  t.deepEqual(uris((await get(url)).body, /^#EXTINF:(.*),$/gm), lasted);
});

test.serial(
  'a request without a part waits for the whole segment; a part after the last is the next segment',
  async (t) => {
    virtualTime(t);
    const { get, advance, children } = await live(t);
    advance(3.1);
    const url = (await children())[1] as string;
    const whole = pending(get(`${url}?_HLS_msn=1`));
    const beyond = pending(get(`${url}?_HLS_msn=1&_HLS_part=4`));
    advance(4);
    await turns();
    t.false(whole.done);
    advance(4.1);
    t.regex((await whole.promise).body, /seg_0_1_video/);
    await turns();
    t.false(beyond.done);
    advance(4.5);
    t.regex((await beyond.promise).body, /part_0_2_0_video/);
  },
);

test('a request too far ahead, or with nonsense, is answered 400', async (t) => {
  const { get, advance, children } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  for (const query of [
    '_HLS_msn=4&_HLS_part=0',
    '_HLS_msn=99999999',
    '_HLS_msn=1&_HLS_part=50',
    '_HLS_part=1',
    '_HLS_msn=-1',
    '_HLS_msn=x',
    '_HLS_msn=1&_HLS_part=1.5',
  ]) {
    t.is((await get(`${url}?${query}`)).statusCode, 400, query);
  }
});

test.serial('requests that wait for longer than three target durations: 503', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t, { llhls: { segmentDuration: 0.5, chunkDuration: 0.5 } }, 30);
  advance(3.1);
  const url = (await children())[1] as string;
  const [hint = ''] = uris((await get(url)).body, /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/g);
  const [late, part] = await Promise.all([get(`${url}?_HLS_msn=4`), get(sibling(url, hint))]);
  t.is(late.statusCode, 503);
  t.is(late.headers['retry-after'], '1');
  t.is(part.statusCode, 503);
});

test.serial('the first segment is waited for as long as it takes, which key frames decide', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t, { llhls: { segmentDuration: 1 } }, 150);
  advance(0.6);
  const urls = await children();
  const held = urls.map((url) => get(url));
  // who asks for a number is not kept longer than three targets
  t.is((await get(`${urls[1]}?_HLS_msn=0`)).statusCode, 503);
  advance(5.1);
  for (const { statusCode, body } of await Promise.all(held)) {
    t.is(statusCode, 200);
    t.is(uris(body, /^(seg_.*)$/gm).length, 1);
  }
});

test.serial('a part that was hinted at is held until it exists', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  const [hint = ''] = uris((await get(url)).body, /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/g);
  t.regex(hint, /^part_0_1_2_video/);
  const held = pending(get(sibling(url, hint)));
  await turns();
  t.false(held.done);
  advance(3.5);
  const answer = await held.promise;
  t.is(answer.statusCode, 200);
  t.is(parseFragment(answer.rawPayload).baseTime, 3 * 90_000);
});

test.serial('a hinted part that its segment ended without: 404', async (t) => {
  virtualTime(t);
  const { get, advance, children, output } = await live(t);
  advance(2.1);
  const url = (await children())[1] as string;
  for (const packet of videoPackets(VIDEO, { from: 2.1, to: 3.5, gop: 60 })) output.write(packet);
  const held = get(sibling(url, uris((await get(url)).body, /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/g)[0] as string));
  const changed = videoTrack({ config: AVC_HIGH });
  for (const packet of videoPackets(changed, { from: 3.5, to: 3.6, gop: 5 })) output.write(packet);
  t.is((await held).statusCode, 404);
});

const HINT = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/g;

test.serial('the hint after what is likely to be the last part of a segment is at the next segment', async (t) => {
  virtualTime(t);
  const { get, advance, children } = await live(t);
  advance(4);
  const [audio = '', video = ''] = await children();
  const held = [video, audio].map(async (url) => {
    const [hint = ''] = uris((await get(url)).body, HINT);
    t.regex(hint, /^part_\d_2_0_/);
    return await get(sibling(url, hint));
  });
  await turns();
  advance(4.6);
  for (const { statusCode, rawPayload } of await Promise.all(held)) {
    t.is(statusCode, 200);
    t.true(parseFragment(rawPayload).duration > 0);
  }
  t.regex((await get(video)).body, /part_0_2_0_.*INDEPENDENT=YES/);
});

test.serial('a stream that begins with a burst is dated when that is over', async (t) => {
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.teardown(() => mock.timers.reset());
  const { get, children, input, output } = await live(t);
  const arrive = (from: number, to: number): void => {
    for (const packet of interleaved(videoPackets(VIDEO, { from, to }), audioPackets(AUDIO, { from, to }))) {
      input.write(packet);
      output.write(packet);
    }
  };
  const dateOf = (body: string): number => Date.parse(/^#EXT-X-PROGRAM-DATE-TIME:(.*)$/m.exec(body)?.[1] as string);
  arrive(0, 0.9);
  const held = (await children()).map((url) => pending(get(`${url}?_HLS_msn=0&_HLS_part=0`)));
  await turns();
  arrive(0.9, 1.7);
  const arrived = Date.now();
  t.true(held.every(({ done }) => !done));
  mock.timers.tick(200);
  for (const { promise } of held) {
    const { statusCode, body } = await promise;
    t.is(statusCode, 200);
    // its last frame came at its time
    t.true(dateOf(body) + 1600 <= arrived + 60, `${dateOf(body) - arrived}`);
  }
});

test.serial(
  'a request for the segment after one that goes on though its end was due gets 404, until it is hinted at again',
  async (t) => {
    virtualTime(t);
    const { get, advance, children, output } = await live(t);
    advance(4);
    const url = (await children())[1] as string;
    const [hint = ''] = uris((await get(url)).body, HINT);
    const held = get(sibling(url, hint));
    await turns();
    for (const packet of videoPackets(VIDEO, { from: 4, to: 4.5, gop: 1000 })) output.write(packet);
    t.is((await held).statusCode, 404);
    const { body } = await get(url);
    t.regex(body, /part_0_1_4_/);
    t.deepEqual(
      uris(body, HINT).map((name) => name.slice(0, 9)),
      ['part_0_1_'],
    );
    t.is((await get(sibling(url, hint))).statusCode, 404);
    for (const packet of videoPackets(VIDEO, { from: 4.5, to: 5.1, gop: 135 })) output.write(packet);
    t.is((await get(sibling(url, hint))).statusCode, 200);
  },
);

test.serial('requests that wait when the stream ends for good get 404, and so do all after', async (t) => {
  virtualTime(t);
  const { get, advance, children, input } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  const held = get(`${url}?_HLS_msn=2&_HLS_part=0`);
  await turns();
  input.end('deleted');
  t.is((await held).statusCode, 404);
  t.is((await get(MASTER)).statusCode, 404);
});

test('a stream that comes again has other names', async (t) => {
  const { get, advance, children, input, goLive } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  input.close('done');
  feeder(goLive([VIDEO, AUDIO]).output)(3.1);
  t.is((await get(url)).statusCode, 404);
  t.is((await get(MASTER)).statusCode, 200);
});

test('legacy players get complete segments only, and wait for the first', async (t) => {
  const { get, advance, children } = await live(t);
  advance(1.6);
  const url = (await children(`${MASTER}?_HLS_legacy=YES`))[1] as string;
  t.regex(url, /\?_HLS_legacy=YES$/);
  const held = pending(get(url));
  await turns();
  t.false(held.done);
  advance(2.1);
  const { body } = await held.promise;
  t.notRegex(body, /PART|SERVER-CONTROL/);
  t.is(uris(body, /^(seg_.*)$/gm).length, 1);
});

test('a delta update where the window has six targets', async (t) => {
  const { get, advance, children } = await live(t, { llhls: { segmentCount: 8 } });
  advance(18.1);
  const url = (await children())[1] as string;
  t.regex((await get(url)).body, /CAN-SKIP-UNTIL=12/);
  t.regex((await get(`${url}?_HLS_skip=YES`)).body, /#EXT-X-SKIP:SKIPPED-SEGMENTS=2/);
});

test('playlists are compressed for players that accept it', async (t) => {
  const { get, advance, children } = await live(t);
  advance(3.1);
  const [url = ''] = await children();
  const plain = await get(url);
  t.is(plain.headers['content-encoding'], undefined);
  const small = await get(url, { 'accept-encoding': 'br, gzip;q=0.8' });
  t.is(small.headers['content-encoding'], 'gzip');
  t.is(small.headers['vary'], 'Accept-Encoding');
  t.is(gunzipSync(small.rawPayload).toString(), plain.body);
  t.is((await get(url, { 'accept-encoding': 'gzip;q=0, br' })).headers['content-encoding'], undefined);
});

test('HEAD has the headers of GET', async (t) => {
  const { app, get, advance, children } = await live(t);
  advance(3.1);
  const [url = ''] = await children();
  const full = await get(url);
  const head = await app.inject({ method: 'HEAD', url });
  t.is(head.statusCode, 200);
  t.is(head.body, '');
  t.is(head.headers['content-length'], full.headers['content-length']);
});

test('ranges of segments: 206, 416, and ignored where they make no sense', async (t) => {
  const { get, advance, children } = await live(t);
  advance(5);
  const url = (await children())[1] as string;
  const [name = ''] = uris((await get(url)).body, /^(seg_.*)$/gm);
  const segment = sibling(url, name);
  const whole = (await get(segment)).rawPayload;
  for (const [range, from, to] of [
    ['bytes=0-9', 0, 10],
    ['bytes=1500-2600', 1500, 2601],
    [`bytes=${whole.length - 5}-`, whole.length - 5, whole.length],
    ['bytes=-7', whole.length - 7, whole.length],
    [`bytes=0-${whole.length * 2}`, 0, whole.length],
  ] as const) {
    const answer = await get(segment, { range });
    t.is(answer.statusCode, 206, range);
    t.deepEqual(answer.rawPayload, whole.subarray(from, to), range);
    t.is(answer.headers['content-range'], `bytes ${from}-${to - 1}/${whole.length}`);
  }
  const beyond = await get(segment, { range: `bytes=${whole.length}-` });
  t.is(beyond.statusCode, 416);
  t.is(beyond.headers['content-range'], `bytes */${whole.length}`);
  for (const range of ['bytes=5-2', 'items=0-1', 'bytes=0-1,3-4', 'bytes=-', 'bytes=x']) {
    t.is((await get(segment, { range })).statusCode, 200, range);
  }
});

test('OPTIONS: 200, whatever the origin; other methods: 404, never 405', async (t) => {
  const { app, advance } = await live(t, { llhls: { crossDomains: { url: ['*.example.com'] } } });
  advance(3);
  const headers = { origin: 'https://a.example.com', 'access-control-request-headers': 'range' };
  const allowed = await app.inject({ method: 'OPTIONS', url: MASTER, headers });
  t.is(allowed.statusCode, 200);
  t.is(allowed.headers['access-control-allow-private-network'], 'true');
  t.is(allowed.headers['access-control-allow-origin'], 'https://a.example.com');
  t.is(allowed.headers['access-control-allow-headers'], 'range');
  const other = await app.inject({ method: 'OPTIONS', url: MASTER, headers: { origin: 'https://example.org' } });
  t.is(other.statusCode, 200);
  t.is(other.headers['access-control-allow-origin'], undefined);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    t.is((await app.inject({ method, url: MASTER })).statusCode, 404, method);
  }
});

test('origins of CrossDomains may read every answer, errors too', async (t) => {
  const { get, advance, children, publisher } = await live(t, {
    llhls: { crossDomains: { url: ['*'], header: [{ key: 'x-own', value: 'yes' }] } },
  });
  const origin = { origin: 'http://somewhere' };
  const held = get(MASTER, origin);
  await until('it is held', () => publisher.waiting === 1);
  advance(3.1);
  t.is((await held).headers['access-control-allow-origin'], '*');
  const [url = ''] = await children();
  for (const path of [
    MASTER,
    url,
    '/app/stream/nothing.m3u8',
    '/app/nobody/llhls.m3u8',
    url.replace('chunklist', 'seg'),
  ]) {
    const { headers } = await get(path, origin);
    t.is(headers['access-control-allow-origin'], '*', path);
    t.is(headers['access-control-expose-headers'], 'WWW-Authenticate', path);
    t.is(headers['x-own'], 'yes', path);
  }
});

test('OriginMode: no tokens, and a stream key that every origin makes alike', async (t) => {
  const first = await live(t, { llhls: { originMode: true } });
  const second = await live(t, { llhls: { originMode: true } });
  first.advance(3.1);
  second.advance(3.1);
  const children = await first.children();
  t.deepEqual(children, await second.children());
  t.regex(children[1] ?? '', /^\/app\/stream\/chunklist_0_video_\d+_llhls\.m3u8$/);
  t.is((await first.get(children[1] as string)).statusCode, 200);
  t.is((await first.get(`/app/stream/${'a'.repeat(40)}/${children[1]?.split('/').at(-1)}`)).statusCode, 404);
  t.is(first.output.sessions.size, 0);
});

test('ServerTimeBasedSegmentNumbering: the first number is that of the wall clock', async (t) => {
  const before = Math.floor(Date.now() / 2000);
  const { get, advance, children } = await live(t, { llhls: { serverTimeBasedSegmentNumbering: true } });
  advance(2.6);
  const [, msn] = /MEDIA-SEQUENCE:(\d+)/.exec((await get((await children())[1] as string)).body) ?? [];
  t.true(Number(msn) >= before && Number(msn) <= Math.floor(Date.now() / 2000));
});

test('the query of the master goes on to the chunklists, the default query to every child', async (t) => {
  const { get, advance, children } = await live(t, { llhls: { defaultQueryString: [{ key: 'cdn', value: 'a b' }] } });
  advance(3.1);
  const urls = await children(`${MASTER}?user=7&_HLS_rewind=NO&_HLS_msn=5`);
  t.true(urls.every((url) => url.endsWith('.m3u8?cdn=a%20b&user=7&_HLS_rewind=NO')));
  const { body } = await get(urls[1] as string);
  for (const uri of uris(body, /URI="([^"]+)"|^(seg_.*)$/gm))
    if (uri !== undefined) t.true(uri.endsWith('?cdn=a%20b'), uri);
  t.is((await get(sibling(urls[1] as string, uris(body, /EXT-X-MAP:URI="([^"]+)"/g)[0] as string))).statusCode, 200);
});

test('a query cannot break out of its quotes', async (t) => {
  const { get, advance } = await live(t);
  advance(3.1);
  const { body } = await get(`${MASTER}?a="%0a,URI="http://evil"`);
  t.notRegex(body, /"http:\/\/evil"/);
});

const NAMED = (hlsChunklistPathDepth: number, fileName: string): Playlist => ({
  name: fileName,
  fileName,
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth, enableTsPackaging: false },
  renditions: [
    { name: 'r', videoVariantName: 'video', audioVariantName: 'audio' },
    { name: 'sound', audioVariantName: 'audio' },
  ],
});

test('configured playlists, with relative chunklist paths as deep as they ask', async (t) => {
  const depths = [
    [-1, ''],
    [0, ''],
    [1, '../stream/'],
    [2, '../../app/stream/'],
    [3, ''],
  ] as const;
  const { advance, get } = await live(t, {
    llhls: { createDefaultPlaylist: false },
    playlists: [
      ...depths.map(([depth]) => NAMED(depth, `depth${depth}`)),
      { ...NAMED(0, 'nothing'), renditions: [{ videoVariantName: 'absent' }] },
    ],
  });
  advance(3.1);
  t.is((await get(MASTER)).statusCode, 404);
  t.is((await get('/app/stream/nothing.m3u8')).statusCode, 404);
  for (const [depth, prefix] of depths) {
    const master = `/app/stream/depth${depth}.m3u8`;
    const urls = uris((await get(master)).body, /(?:URI="|^)([^"#\n]+\.m3u8)/gm);
    t.is(urls.length, 3);
    for (const url of urls) {
      t.regex(url.slice(0, prefix.length + 81), new RegExp(`^${prefix.replaceAll('.', '\\.')}[\\w-]{80}/$`));
      t.is((await get(inPlace(url, master))).statusCode, 200);
      // as it is below a path that a proxy takes away
      t.is(inPlace(url, `/below/here${master}`), `/below/here${inPlace(url, master)}`);
    }
  }
});

test('sound alone plays by its own chunklist', async (t) => {
  const { goLive, children, get } = await openLlhls(t, { llhls: LLHLS });
  const { output } = goLive([AUDIO]);
  for (const packet of audioPackets(AUDIO, { to: 5 })) output.write(packet);
  const { body } = await get(MASTER);
  t.notRegex(body, /EXT-X-MEDIA|RESOLUTION|FRAME-RATE|AUDIO=/);
  t.regex(body, /CODECS="mp4a\.40\.2"/);
  const [url = ''] = await children();
  t.regex((await get(url)).body, /seg_1_0_audio/);
});

test.serial(
  'a player is counted from its master playlist on, once, and until it has been silent for three targets',
  async (t) => {
    virtualTime(t);
    const { get, advance, children, output, app } = await live(
      t,
      { llhls: { segmentDuration: 0.5, chunkDuration: 0.5 } },
      30,
    );
    advance(3.1);
    t.is((await app.inject({ method: 'HEAD', url: MASTER })).statusCode, 200);
    t.is(output.counters.publishers.llhls, 0);
    const urls = await children();
    t.is(output.counters.publishers.llhls, 1);
    const [session] = output.sessions.values();
    t.is(session?.kind, 'llhls');
    t.true((session?.out.totalBytes ?? 0) > 0);
    for (const url of urls) await get(url);
    t.is(output.counters.publishers.llhls, 1);
    t.deepEqual([...output.sessions.values()], [session]);
    t.true(output.counters.out.totalBytes >= (session?.out.totalBytes ?? Infinity));
    await until('it has been silent', () => output.counters.publishers.llhls === 0);
    t.is(output.sessions.size, 0);
    t.is((await app.inject(urls[0] as string)).statusCode, 200);
    t.is(output.counters.publishers.llhls, 1);
  },
);

test('a player that was thrown out stays out: 401', async (t) => {
  const { get, advance, children, output } = await live(t);
  advance(3.1);
  const [url = ''] = await children();
  const [other = ''] = await children();
  await get(url);
  const [id = ''] = output.sessions.keys();
  t.regex(id, /^[0-9a-f-]{36}$/);
  await get(other);
  output.sessions.get(id)?.kick();
  t.is(output.sessions.size, 1);
  t.like(await get(url), { statusCode: 401, body: '' });
  t.is((await get(other)).statusCode, 200);
});

test('a player names its session; a name that was thrown out gets no playlist either', async (t) => {
  const { get, advance, children, output } = await live(t);
  advance(3.1);
  const named = `${MASTER}?session=some%2Fbody`;
  const [url = ''] = await children(named);
  t.is((await get(url)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()], ['some/body']);
  output.sessions.get('some/body')?.kick();
  t.like(await get(url), { statusCode: 401, body: '' });
  t.like(await get(named), { statusCode: 401, body: '' });
  t.is((await get(MASTER)).statusCode, 200);
});

test.serial('a player that loads the playlist again under its name goes on, and its older token ends', async (t) => {
  virtualTime(t);
  const { get, advance, children, output } = await live(t);
  advance(3.1);
  const named = `${MASTER}?session=somebody`;
  const [first = ''] = await children(named);
  await get(first);
  const asked = Date.now();
  await until('the clock goes on', () => Date.now() > asked);
  const [second = ''] = await children(named);
  t.is((await get(first)).statusCode, 200, 'it is only told of a new token until it uses that');
  t.is((await get(second)).statusCode, 200);
  t.is((await get(first)).statusCode, 401);
  t.is((await get(second)).statusCode, 200);
  t.is(output.sessions.size, 1);
  t.is(output.counters.publishers.llhls, 1);
});

test('a name that a viewer elsewhere has is taken', async (t) => {
  const { get, advance, children, output, application, input } = await live(
    t,
    { llhls: { segmentDuration: 0.5, chunkDuration: 0.5 } },
    30,
  );
  advance(3.1);
  const named = `${MASTER}?session=somebody`;
  const [early = ''] = await children(named);
  await until('it has been silent', () => output.sessions.size === 0);
  const other = application.addOutput(input, 'other');
  const leave = other.addSession({ id: 'somebody', kind: 'webrtc', createdTime: 0, out: new Flow(0), kick: () => {} });
  t.is((await get(named)).statusCode, 409);
  t.is((await get(early)).statusCode, 401);
  t.is(output.sessions.size, 0);
  leave();
  t.is((await get(early)).statusCode, 200);
  t.is((await get(named)).statusCode, 200);
});

test('players beyond MaxConnection get 503, and earlier ones go on', async (t) => {
  const { get, advance, children } = await live(t, { llhls: { maxConnection: 1 } });
  advance(3.1);
  const [first = ''] = await children();
  t.is((await get(MASTER)).statusCode, 503);
  t.is((await get(first)).statusCode, 200);
});

test('a codec without a place in HLS is left out with one warning', async (t) => {
  const { goLive, get, lines } = await openLlhls(t, { llhls: LLHLS });
  const { output } = goLive([videoTrack({ codec: 'VP8', config: undefined }), AUDIO]);
  for (const packet of audioPackets(AUDIO, { to: 3 })) output.write(packet);
  t.regex((await get(MASTER)).body, /CODECS="mp4a\.40\.2"/);
  t.is(lines.filter(({ msg }) => String(msg).includes('not included in HLS')).length, 1);
});

test('a track that comes later joins; one that leaves is there for those who know it', async (t) => {
  const { get, output, goLive, children } = await (async () => {
    const server = await openLlhls(t, { llhls: LLHLS });
    return { ...server, ...server.goLive([VIDEO]) };
  })();
  t.truthy(goLive);
  for (const packet of videoPackets(VIDEO, { to: 3, gop: 60 })) output.write(packet);
  const [video = ''] = await children();
  output.setTracks([VIDEO, AUDIO]);
  for (const packet of interleaved(
    videoPackets(VIDEO, { from: 3, to: 5.1, gop: 60 }),
    audioPackets(AUDIO, { from: 3, to: 5.1 }),
  ))
    output.write(packet);
  const text = (await get(video)).body;
  const [report = ''] = uris(text, /RENDITION-REPORT:URI="([^"]+)"/g);
  t.regex(report, /^chunklist_1_audio/);
  const audio = (await get(sibling(video, report))).body;
  t.is(/MEDIA-SEQUENCE:(\d+)/.exec(audio)?.[1], '1');
  output.setTracks([VIDEO]);
  for (const packet of videoPackets(VIDEO, { from: 5.1, to: 10, gop: 60 })) output.write(packet);
  const newest = (body: string) => Math.max(...uris(body, /^seg_\d+_(\d+)_/gm).map(Number));
  t.is(newest((await get(sibling(video, report))).body), newest((await get(video)).body));
  t.notRegex((await get(video)).body, /RENDITION-REPORT/);
  t.notRegex((await get(MASTER)).body, /TYPE=AUDIO/);
});

test('a client that leaves takes its held request for a master playlist with it', async (t) => {
  const { app, publisher } = await live(t);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`GET ${MASTER} HTTP/1.1\r\nHost: h\r\n\r\n`.repeat(20));
  // the others of its connection are refused
  await until('few are held', () => publisher.waiting === 4);
  socket.destroy();
  await until('none is held', () => publisher.waiting === 0);
  t.is(publisher.waiting, 0);
});

test('a client that leaves takes its held request with it', async (t) => {
  const { app, advance, children, get } = await live(t);
  advance(3.1);
  const url = (await children())[1] as string;
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const closed = new Promise<void>((resolve) => {
    app.server.once('request', (_message: IncomingMessage, response) => response.once('close', resolve));
  });
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${url}?_HLS_msn=2&_HLS_part=0 HTTP/1.1\r\nHost: h\r\n\r\n`);
  await once(app.server, 'request');
  socket.destroy();
  await closed;
  advance(4.6);
  t.is((await get(url)).statusCode, 200);
});

test.serial(
  'a playlist that has not changed is repeated to a session after half a target duration, or when it changes',
  async (t) => {
    virtualTime(t);
    const { get, advance, children, publisher } = await live(t);
    advance(4.1);
    const [sound = '', picture = ''] = await children();
    const [, other = ''] = await children();
    const first = await get(picture);
    for (const url of [sound, other, `${picture}?_HLS_legacy=YES`, `${picture}?_HLS_skip=YES`, `${picture}?_HLS_msn=1`])
      t.is((await get(url)).statusCode, 200, 'another playlist, session, form, or one that is named');
    const again = pending(get(picture));
    const legacy = pending(get(`${picture}?_HLS_legacy=YES`));
    await delay(900);
    t.false(again.done);
    t.is(publisher.waiting, 2);
    // the target duration is 2 s
    await delay(200);
    t.true(again.done);
    t.is((await again.promise).body, first.body);

    const next = pending(get(picture));
    await delay(100);
    t.false(next.done);
    advance(4.6);
    await turns();
    t.true(next.done);
    t.not((await next.promise).body, first.body);
    t.is((await legacy.promise).statusCode, 200);
    // who waits as long as it is to is not held
    t.is((await get(picture)).statusCode, 200);
    await delay(1100);
    const late = pending(get(picture));
    await turns();
    t.true(late.done);
    t.is(publisher.waiting, 0);
  },
);

test.serial(
  'a request is not held with all of a stream that is over, without a session, or beside many on one connection',
  async (t) => {
    const ended = await live(t);
    ended.advance(4.1);
    const [url = ''] = await ended.children();
    ended.publisher.live(ended.application, 'stream')?.stream.conclude(true);
    for (let count = 0; count < 3; count++) t.regex((await ended.get(url)).body, /ENDLIST/);

    const origin = await live(t, { llhls: { originMode: true } });
    origin.advance(4.1);
    const [free = ''] = await origin.children();
    for (let count = 0; count < 3; count++) t.is((await origin.get(free)).headers['cache-control'], 'max-age=1');
    const told = await live(t, { llhls: { originMode: true, cacheControl: { chunklistMaxAge: 0 } } });
    told.advance(4.1);
    const [own = ''] = await told.children();
    t.is((await told.get(own)).headers['cache-control'], 'no-cache, no-store');

    const { app, advance, children } = await live(t);
    advance(4.1);
    const [, picture = ''] = await children();
    await app.listen({ host: '127.0.0.1', port: 0 });
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    let text = '';
    socket.on('data', (data) => (text += data.toString('latin1')));
    socket.write(`GET ${picture} HTTP/1.1\r\nHost: h\r\n\r\n`.repeat(8));
    await until('all are answered', () => text.split('HTTP/1.1 200').length === 9);
  },
);

test('one connection holds few requests, however many it sends', async (t) => {
  const { app, advance, children } = await live(t);
  advance(4.1);
  const url = (await children())[1] as string;
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let text = '';
  socket.on('data', (data) => (text += data.toString('latin1')));
  const asked = 20;
  let arrived = 0;
  const all = new Promise<void>((resolve) => app.server.on('request', () => ++arrived === asked && resolve()));
  socket.write(`GET ${url}?_HLS_msn=2&_HLS_part=1 HTTP/1.1\r\nHost: h\r\n\r\n`.repeat(asked));
  await all;
  advance(6);
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status);
  await until('all are answered', () => statuses().length === asked);
  t.deepEqual(statuses().toSorted(), [...Array(4).fill('200'), ...Array(16).fill('503')]);
});

test('several requests over a socket: keep-alive, one length for segments of several parts', async (t) => {
  const { app, advance, children, get } = await live(t);
  advance(5);
  const url = (await children())[1] as string;
  const [name = ''] = uris((await get(url)).body, /^(seg_.*)$/gm);
  const whole = (await get(sibling(url, name))).rawPayload;
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const outgoing = request({ host: '127.0.0.1', port, path: sibling(url, name) }).end();
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  t.is(answer.headers['content-length'], String(whole.length));
  t.deepEqual(Buffer.concat(chunks), whole);
});

test('hundreds of mutated URLs and headers: an answer of the table each, and the stream goes on', async (t) => {
  const { get, advance, children } = await live(t);
  advance(5.1);
  const urls = await children();
  const { body } = await get(urls[1] as string);
  const seeds = [MASTER, ...urls, ...uris(body, /URI="([^"]+)"/g).map((name) => sibling(urls[1] as string, name))];
  const pieces = [
    '_HLS_msn=',
    '_HLS_part=',
    '9'.repeat(30),
    '%00',
    '%2e%2e',
    '/',
    '?',
    '&',
    '..',
    '%',
    'A'.repeat(200),
    '_v1',
    '-1',
    '"',
    '%ff',
  ];
  let state = 20_260_102;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const seen = new Set<number>();
  for (let round = 0; round < 600; round++) {
    let url = seeds[random(seeds.length)] as string;
    for (let change = random(3); change >= 0; change--) {
      const at = 1 + random(url.length);
      url = url.slice(0, at) + (pieces[random(pieces.length)] as string) + url.slice(at + random(6));
    }
    const { statusCode } = await get(url, {
      range: `bytes=${random(9)}-${random(9)}`,
      'accept-encoding': pieces[random(pieces.length)] as string,
    });
    seen.add(statusCode);
  }
  t.true(
    [...seen].every((status) => [200, 206, 400, 401, 404, 414].includes(status)),
    [...seen].join(),
  );
  t.is((await get(urls[0] as string)).statusCode, 200);
});

test('the default playlist follows the tracks: sound that comes later is in it, a track that is gone is not', async (t) => {
  const server = await openLlhls(t, { llhls: LLHLS });
  const { input, output } = server.goLive([VIDEO]);
  for (const packet of videoPackets(VIDEO, { to: 3 })) output.write(packet);
  t.is((await server.children()).length, 1);
  for (const stream of [input, output]) stream.setTracks([VIDEO, AUDIO]);
  const span = { from: 3, to: 6 };
  for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
  const [audio = '', video = ''] = await server.children();
  t.regex(audio, /chunklist_1_audio_/);
  t.regex(video, /chunklist_0_video_/);
  t.deepEqual(
    output.playlists.map(({ renditions }) => renditions),
    [[{ name: 'video', videoVariantName: 'video', audioVariantName: 'audio' }]],
  );
  for (const stream of [input, output]) stream.setTracks([AUDIO]);
  const [only = '', ...others] = await server.children();
  t.regex(only, /chunklist_1_audio_/);
  t.deepEqual(others, []);
});

test('a default playlist exists as long as a track has a place in HLS; a configured one of its name stays', async (t) => {
  const server = await openLlhls(t, { llhls: LLHLS });
  const vp8 = videoTrack({ codec: 'VP8', config: undefined });
  const { output } = server.goLive([vp8]);
  t.deepEqual(output.playlists, []);
  output.setTracks([vp8, AUDIO]);
  t.deepEqual(
    output.playlists.map(({ fileName }) => fileName),
    ['llhls'],
  );
  output.setTracks([vp8]);
  t.deepEqual(output.playlists, []);

  const own = NAMED(0, 'llhls');
  const configured = await openLlhls(t, { llhls: LLHLS, playlists: [own] });
  const { output: other } = configured.goLive([VIDEO]);
  other.setTracks([VIDEO, AUDIO]);
  t.deepEqual(other.playlists, [own]);
});

test('a track that cannot be packaged any more leaves, with its files', async (t) => {
  const { get, output, advance, children } = await live(t);
  advance(3.1);
  const [audio = '', video = ''] = await children();
  const [init = ''] = uris((await get(audio)).body, /EXT-X-MAP:URI="([^"]+)"/g);
  const [segment = ''] = uris((await get(audio)).body, /^(seg_.*)$/gm);
  output.setTracks([VIDEO, audioTrack({ codec: 'MP3', config: undefined })]);
  for (const name of [audio, sibling(audio, init), sibling(audio, segment)]) t.is((await get(name)).statusCode, 404);
  t.is((await get(video)).statusCode, 200);
  t.notRegex((await get(MASTER)).body, /TYPE=AUDIO/);
});

test('an initialization is there as long as a segment needs it, and not before', async (t) => {
  const { get, output, advance, children } = await live(t);
  advance(2.6);
  const [, video = ''] = await children();
  const [init = ''] = uris((await get(video)).body, /EXT-X-MAP:URI="([^"]+)"/g);
  const next = sibling(video, init.replace('_llhls', '_v1_llhls'));
  const changed = videoTrack({ config: AVC_HIGH });
  output.setTracks([changed, AUDIO]);
  const [key, frame] = videoPackets(changed, { from: 3, to: 3.1 });
  const halfway = videoPackets(changed, { from: 2.6, to: 2.7 })[0];
  t.false(halfway?.key);
  if (halfway !== undefined) output.write(halfway);
  t.is((await get(next)).statusCode, 404);
  for (const packet of [key, frame]) if (packet !== undefined) output.write(packet);
  t.is((await get(next)).statusCode, 200);
  t.is((await get(sibling(video, init))).statusCode, 200);
});

test('the children of a stream that a guard chose in place of another are asked for under its own name', async (t) => {
  const guard = () => async () => ({ target: { stream: 'stream' } });
  for (const hlsChunklistPathDepth of [0, 1, 3]) {
    const options = { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, enableTsPackaging: false };
    const playlist: Playlist = {
      name: 'all',
      fileName: 'all',
      renditions: [{ name: 'all', videoVariantName: VIDEO.name, audioVariantName: AUDIO.name }],
      options: { ...options, hlsChunklistPathDepth },
    };
    const { advance, get } = await live(t, { access: { guards: [guard] }, playlists: [playlist] });
    advance(3);
    const url = '/app/another/all.m3u8?session=me';
    const master = await get(url);
    t.is(master.statusCode, 200);
    const children = uris(master.body, /^([^#\n]+)$/gm);
    t.true(children.length > 0);
    for (const child of children) {
      const { pathname, search } = new URL(child, `http://live.example${url}`);
      t.is((await get(pathname + search)).statusCode, 200, child);
    }
  }
});
