import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import type { Packet } from '../../../../../src/core/packet.ts';
import type { Playlist } from '../../../../../src/core/playlist.ts';
import type { OutputStream } from '../../../../../src/core/output-stream.ts';
import type { Track } from '../../../../../src/core/track.ts';
import { codedPackets, tracksOf } from '../../../../support/media/coded-packets.ts';
import { decode } from '../../../../support/media/decoder.ts';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../../support/media/packets.ts';
import { inPlace } from '../../../../support/hls/playlist-uris.ts';
import { analyse } from '../../../../support/mpegts/ts-analyser.ts';
import { until } from '../../../../support/time/until.ts';

const MASTER = '/app/stream/ts:playlist.m3u8';
const CONFIG = { segmentDuration: 2, segmentCount: 3 };
const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** A stream with HLS, and a function that brings it on to a media time, in seconds. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}, tracks: readonly Track[] = [VIDEO, AUDIO]) {
  const server = await openLlhls(t, { ...setup, hls: { ...CONFIG, ...setup.hls } });
  const { input, output } = server.goLive(tracks);
  return { ...server, input, output, advance: feeder(output) };
}

function feeder(output: OutputStream, gop = 60) {
  let from = 0;
  return (to: number) => {
    const span = { from, to, gop };
    for (const packet of interleaved(
      ...output.tracks.map((track) =>
        track.type === 'video'
          ? videoPackets(track, span).map(withNal)
          : track.type === 'audio'
            ? audioPackets(track, span)
            : [],
      ),
    ))
      output.write(packet);
    from = to;
  };
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const child = async ({ get }: { get: (url: string) => Promise<{ body: string }> }, master = MASTER) =>
  inPlace(lines((await get(master)).body)[0] as string, master);
type Media = HLS.types.MediaPlaylist;

test('HLS with MPEG-TS holds requests before the first segment, and serves all files after it', async (t) => {
  const { get, advance, publishers } = await live(t);
  const held = get(MASTER);
  const waiting = () => publishers.reduce((sum, publisher) => sum + publisher.waiting, 0);
  await until('it is held', () => waiting() === 1);
  advance(1.9);
  await new Promise(setImmediate);
  t.is(waiting(), 1);
  advance(2.2);
  const { statusCode, headers, body } = await held;
  t.is(statusCode, 200);
  t.like(headers, { 'content-type': 'application/vnd.apple.mpegurl', 'cache-control': 'no-cache, no-store' });
  t.regex(
    body,
    /^#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH=\d+,AVERAGE-BANDWIDTH=\d+,RESOLUTION=640x360,FRAME-RATE=30.000,CODECS="avc1.42c01e,mp4a.40.2",CLOSED-CAPTIONS=NONE\n[^/]+\/medialist_\d+_hls.m3u8\n$/,
  );
});

test('the playlist goes by all its names, and others are not there', async (t) => {
  const { get, advance } = await live(t);
  advance(2.2);
  for (const url of [MASTER, '/app/stream/playlist.m3u8?format=ts', '/app/stream/ts:playlist.m3u8?format=ts&a=b']) {
    t.regex((await get(url)).body, /medialist_/, url);
  }
  t.notRegex((await get('/app/stream/llhls.m3u8')).body, /medialist_/);
  for (const url of [
    '/app/stream/ts:other.m3u8',
    '/app/stream/ts:llhls.m3u8',
    '/app/nobody/ts:playlist.m3u8',
    '/other/stream/ts:playlist.m3u8',
    '/app/stream/other.ts',
  ]) {
    t.is((await get(url)).statusCode, 404, url);
  }
});

test('the media playlist has the newest segments, and each of them is there', async (t) => {
  const server = await live(t);
  const { get, advance } = server;
  advance(14.2);
  const url = await child(server);
  const { body, headers } = await get(url);
  t.is(headers['content-type'], 'application/vnd.apple.mpegurl');
  const text = body.replace(/T[\d:.]+Z/g, 'T');
  t.regex(
    text,
    /^#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:4\n(#EXT-X-PROGRAM-DATE-TIME:[\d-]+T\n#EXTINF:2.000,\nseg_\d+_\d_hls.ts\n){3}$/,
  );
  const list = HLS.parse(body) as Media;
  t.deepEqual(
    list.segments.map(({ mediaSequenceNumber, duration }) => [mediaSequenceNumber, duration]),
    [
      [4, 2],
      [5, 2],
      [6, 2],
    ],
  );
  const parts: Buffer[] = [];
  for (const { uri } of list.segments) {
    const segment = await get(sibling(url, uri));
    t.is(segment.statusCode, 200);
    t.is(segment.headers['content-type'], 'video/mp2t');
    const { errors, pats, pes } = analyse(segment.rawPayload);
    t.deepEqual(errors, []);
    t.is(pats[0], 0, 'tables come first');
    t.true(pes.get(0x100)?.[0]?.random);
    t.is(pes.get(0x100)?.length, 60);
    parts.push(segment.rawPayload);
  }
  t.deepEqual(analyse(Buffer.concat(parts)).errors, [], 'counters go on from one to the next');
  t.is(
    (await get(sibling(url, list.segments[0]?.uri.replace('_4_', '_2_') ?? ''))).statusCode,
    200,
    'it has just left',
  );
  t.is((await get(sibling(url, list.segments[0]?.uri.replace('_4_', '_1_') ?? ''))).statusCode, 404);
  t.is((await get(sibling(url, list.segments[0]?.uri.replace('_4_', '_7_') ?? ''))).statusCode, 404);
  const range = await get(sibling(url, list.segments[0]?.uri ?? ''), { range: 'bytes=188-375' });
  t.is(range.statusCode, 206);
  t.deepEqual(range.rawPayload, parts[0]?.subarray(188, 376));
});

test('HLS with MPEG-TS from an encoder decodes without errors, whatever the order of requests for segments', async (t) => {
  const packets = codedPackets({ video: { codec: 'H264', gop: 25 }, audio: 'AAC', seconds: 6.5 });
  const server = await live(t, { hls: { segmentDuration: 1, segmentCount: 6 } }, tracksOf(packets));
  for (const packet of packets) server.output.write(packet);
  const url = await child(server);
  const names = lines((await server.get(url)).body);
  t.true(names.length >= 5);
  const bytes = new Map<string, Buffer>();
  for (const name of names.toReversed()) bytes.set(name, (await server.get(sibling(url, name))).rawPayload);
  const whole = Buffer.concat(names.map((name) => bytes.get(name) as Buffer));
  t.is(await decode(whole), '');
  const pes = analyse(whole).pes.get(0x100) ?? [];
  t.is(pes.length, names.length * 25);
  t.true((analyse(whole).pes.get(0x101) ?? []).length < names.length * 10, 'sound goes in groups');
});

test('sound alone is cut by time', async (t) => {
  const server = await live(t, {}, [AUDIO]);
  server.advance(9);
  const url = await child(server);
  t.regex((await server.get(MASTER)).body, /CODECS="mp4a.40.2"/);
  const { segments, targetDuration } = HLS.parse((await server.get(url)).body) as Media;
  t.is(segments.length, 3);
  t.true(segments.every(({ duration }) => Math.round(duration) <= targetDuration));
  for (const { uri } of segments) t.deepEqual(analyse((await server.get(sibling(url, uri))).rawPayload).errors, []);
});

test('every rendition of a playlist that asks for MPEG-TS is a variant, cut at the same places', async (t) => {
  const options = {
    webrtcAutoAbr: true,
    webrtcAudioOnlyFallback: false,
    hlsChunklistPathDepth: 0,
    enableTsPackaging: true,
  };
  const renditions = [
    { videoVariantName: 'video', audioVariantName: 'audio' },
    { videoVariantName: 'small', audioVariantName: 'audio' },
    { audioVariantName: 'audio' },
  ];
  const playlists: Playlist[] = [
    { name: 'abr', fileName: 'abr', options, renditions },
    { fileName: 'plain', options: { ...options, enableTsPackaging: false }, renditions },
  ];
  const server = await live(t, { playlists, hls: { createDefaultPlaylist: false } }, [
    VIDEO,
    AUDIO,
    videoTrack({ id: 2, name: 'small', width: 320, height: 180 }),
  ]);
  server.advance(8.2);
  t.is((await server.get('/app/stream/ts:playlist.m3u8')).statusCode, 404);
  t.is((await server.get('/app/stream/ts:plain.m3u8')).statusCode, 404);
  const { body } = await server.get('/app/stream/ts:abr.m3u8');
  t.deepEqual(
    (HLS.parse(body) as HLS.types.MasterPlaylist).variants.map(({ resolution }) => resolution?.height),
    [360, 180, undefined],
  );
  const lists = await Promise.all(
    lines(body).map(async (name) => HLS.parse((await server.get(`/app/stream/${name}`)).body) as Media),
  );
  const times = lists.map(({ segments }) => segments.map(({ mediaSequenceNumber }) => mediaSequenceNumber));
  t.deepEqual(times, [
    [1, 2, 3],
    [1, 2, 3],
    [1, 2, 3],
  ]);
});

test('a change of configuration is a discontinuity, which is counted when it has left', async (t) => {
  const server = await live(t);
  const { get, output, advance } = server;
  advance(4);
  output.setTracks([videoTrack({ config: AVC_HIGH, width: 1280, height: 720 }), AUDIO]);
  advance(8.2);
  const url = await child(server);
  const { body } = await get(url);
  t.is(body.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
  for (const name of lines(body)) t.deepEqual(analyse((await get(sibling(url, name))).rawPayload).errors, []);
  advance(16.2);
  t.regex((await get(url)).body, /#EXT-X-DISCONTINUITY-SEQUENCE:1\n/);
  t.notRegex((await get(url)).body, /#EXT-X-DISCONTINUITY\n/);
});

test('players need a session, are counted and listed, and can be thrown out', async (t) => {
  const server = await live(t);
  const { get, advance, input, output, application } = server;
  advance(4.2);
  const url = await child(server, `${MASTER}?session=one`);
  const [name = ''] = lines((await get(url)).body);
  t.is(application.counters.publishers.hlsv3, 1);
  t.is(application.counters.publishers.llhls, 0);
  t.is((await get(`/app/stream/${name}`)).statusCode, 401);
  t.is((await get(`/app/stream/wrong/${name}`)).statusCode, 401);
  t.is((await get(`/app/stream/medialist_1_hls.m3u8`)).statusCode, 401);
  const { length } = (await get(sibling(url, name))).rawPayload;
  const session = output.sessions.get('one');
  t.is(session?.kind, 'hlsv3');
  t.true((session?.out.totalBytes ?? 0) > length);
  session?.kick();
  t.is((await get(url)).statusCode, 401);
  t.is((await get(`${MASTER}?session=one`)).statusCode, 401);
  t.true(input.kicked.has('one'));
});

test('players of HLS with MPEG-TS are limited by MaxConnection', async (t) => {
  const server = await live(t, { hls: { maxConnection: 1 } });
  server.advance(4.2);
  const first = await child(server);
  t.is((await server.get(MASTER)).statusCode, 503);
  t.is((await server.get(first)).statusCode, 200);
});

test('HLS with MPEG-TS in origin mode has no session, and the same names on every origin', async (t) => {
  const open = async () => {
    const server = await live(t, {
      hls: {
        originMode: true,
        serverTimeBasedSegmentNumbering: true,
        cacheControl: { segmentMaxAge: 9, chunklistMaxAge: 1, masterPlaylistMaxAge: 5 },
      },
    });
    server.advance(4.2);
    return server;
  };
  const [one, other] = [await open(), await open()];
  const url = await child(one);
  t.is(url, await child(other));
  t.regex(url, /^\/app\/stream\/medialist_\d+_hls.m3u8$/);
  const { body, headers } = await one.get(url);
  t.is(headers['cache-control'], 'max-age=1');
  t.true(((HLS.parse(body) as Media).mediaSequenceBase as number) > Date.now() / 1000 / 2 - 1000);
  const segment = await one.get(sibling(url, lines(body)[0] as string));
  t.is(segment.headers['cache-control'], 'max-age=9');
});

test('queries are handed on, and the configured ones are added', async (t) => {
  const server = await live(t, {
    hls: { defaultQueryString: [{ key: 'cdn', value: 'x y' }], crossDomains: { url: ['*'] } },
  });
  server.advance(4.2);
  const url = await child(server, '/app/stream/playlist.m3u8?format=ts&token=abc');
  t.true(url.endsWith('_hls.m3u8?cdn=x%20y&format=ts&token=abc'), url);
  const { body, headers } = await server.get(url, { origin: 'http://somewhere', 'accept-encoding': 'gzip' });
  t.is(headers['access-control-allow-origin'], '*');
  t.is(typeof body, 'string');
  const plain = gunzipSync((await server.get(url, { 'accept-encoding': 'gzip' })).rawPayload).toString();
  t.regex(plain, /_hls.ts\?cdn=x%20y\n/);
  const options = await server.app.inject({ method: 'OPTIONS', url: '/app/stream/ts:playlist.m3u8' });
  t.is(options.headers['access-control-allow-private-network'], 'true');
});

test('a stream that has ended for good is not there any more; one that may return stays', async (t) => {
  const server = await live(t);
  const { get, advance, input, output } = server;
  advance(4.2);
  const url = await child(server);
  const { body } = await get(url);
  input.close('the publisher has gone');
  // the segment that was growing is complete
  const kept = await get(url);
  t.is(kept.statusCode, 200);
  t.true(kept.body.startsWith(body));
  t.is(lines(kept.body).length, lines(body).length + 1);
  t.true(output.closed);

  const other = await live(t);
  other.advance(4.2);
  const gone = await child(other);
  other.input.end('deleted');
  for (const path of [gone, MASTER]) t.is((await other.get(path)).statusCode, 404);
});

test('access control for hlsv3 shuts the door as long as nothing can check it', async (t) => {
  const vhost = {
    signedPolicy: {
      policyQueryKeyName: 'policy',
      signatureQueryKeyName: 'signature',
      secretKey: 'x',
      enables: { publishers: 'hlsv3' },
    },
  };
  const server = await live(t, { vhost });
  server.advance(4.2);
  t.is((await server.get(MASTER)).statusCode, 401);
  t.is((await server.get('/app/stream/llhls.m3u8')).statusCode, 200);
});

test('an announced audio track that does not come is not waited for, and is there when it comes', async (t) => {
  const server = await live(t);
  const write = (...packets: readonly Packet[][]) =>
    interleaved(...packets).forEach((packet) => server.output.write(packet));
  const pictures = (from: number, to: number) => videoPackets(VIDEO, { from, to, gop: 60 }).map(withNal);
  const newest = async (): Promise<ReadonlyMap<number, readonly unknown[]>> => {
    const url = await child(server);
    const name = lines((await server.get(url)).body).at(-1) as string;
    const { errors, pes } = analyse((await server.get(sibling(url, name))).rawPayload);
    t.deepEqual(errors, []);
    return pes;
  };
  write(pictures(0, 12.2));
  t.is((await newest()).get(0x101), undefined);
  write(pictures(12.2, 20.2), audioPackets(AUDIO, { from: 13, to: 20.2 }));
  t.true(((await newest()).get(0x101)?.length ?? 0) > 0);
});

test('a frame that MPEG-TS has no place for is left out and counted, and the rest is right', async (t) => {
  const server = await live(t);
  const span = { to: 4.2, gop: 60 };
  const broken = (packet: Packet, index: number): Packet =>
    index === 7 ? { ...packet, data: Buffer.from('ffffffff', 'hex') } : withNal(packet);
  for (const packet of interleaved(videoPackets(VIDEO, span).map(broken), audioPackets(AUDIO, span)))
    server.output.write(packet);
  const url = await child(server);
  const [first = ''] = lines((await server.get(url)).body);
  const { errors, pes } = analyse((await server.get(sibling(url, first))).rawPayload);
  t.deepEqual(errors, []);
  t.is(pes.get(0x100)?.length, 59);
});
