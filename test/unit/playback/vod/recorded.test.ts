import test, { type ExecutionContext } from 'ava';
import { signUrl } from '../../../../src/access/policy/sign.ts';
import { placedTracks } from '../../../support/media/mp4-samples.ts';
import { notedSessions, WEBHOOK_SESSION } from '../../../support/access/access.ts';
import { NOON, openPlayback } from '../../../support/playback/recorded.ts';
import { checkMasterPlaylist } from '../../../support/playlist-rules/master-rules.ts';
import { checkMediaPlaylist } from '../../../support/playlist-rules/media-rules.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { SubtitleTrack } from '../../../../src/core/track.ts';
import { cuePacket, interleaved, subtitleTrack, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { recordedBytes } from '../../../support/recording/recorded-mp4.ts';
import { urisOf } from '../../../support/hls/playlist-uris.ts';

const MASTER = '/app/stream/recorded.m3u8?start=2026-03-05T12:00:08.5Z&duration=10';
const ORIGIN = 'http://localhost:80';
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 's',
  algorithm: 'sha1',
} as const;

type Opened = Awaited<ReturnType<typeof openPlayback>>;

/** Path of what a playlist names. */
function pathsIn(text: string, path: string): string[] {
  return urisOf(text, ORIGIN + path).map((uri) => new URL(uri).pathname);
}

async function play(t: ExecutionContext, { get }: Opened, path = MASTER) {
  const master = await get(path);
  t.is(master.statusCode, 200, master.body);
  const [list = ''] = pathsIn(master.body, path);
  const media = await get(list);
  t.is(media.statusCode, 200, media.body);
  return { master, list, media, paths: pathsIn(media.body, list) };
}

test('a clip is played as HLS, from the key frame before it', async (t) => {
  const opened = await openPlayback(t);
  await opened.recordMp4(0, 12);
  await opened.recordMp4(14, 6);
  const { master, media, paths } = await play(t, opened);
  t.is(master.headers['content-type'], 'application/vnd.apple.mpegurl');
  t.is(master.headers['cache-control'], 'no-cache, no-store');
  t.deepEqual(checkMasterPlaylist(master.body), []);
  t.deepEqual(checkMediaPlaylist(media.body), []);
  t.regex(master.body, /BANDWIDTH=\d+,AVERAGE-BANDWIDTH=\d+,RESOLUTION=640x360,CODECS="avc1.42c01e,mp4a.40.2"/);
  for (const { body } of [master, media]) t.regex(body, /^#EXT-X-START:TIME-OFFSET=2.500,PRECISE=YES$/m);
  t.regex(media.body, /^#EXT-X-PLAYLIST-TYPE:VOD$/m);
  const dates = [...media.body.matchAll(/DATE-TIME:(.*)$/gm)].map(([, date]) => date);
  t.deepEqual(dates, ['2026-03-05T12:00:06.000Z', '2026-03-05T12:00:14.000Z']);
  const durations = [...media.body.matchAll(/EXTINF:([\d.]+)/g)].map(([, duration]) => Math.round(Number(duration)));
  t.deepEqual(durations, [6, 6]);
  t.is(media.body.split('#EXT-X-DISCONTINUITY\n').length, 2);
  const files = await Promise.all(paths.map((path) => opened.get(path)));
  t.deepEqual(
    files.map(({ statusCode }) => statusCode),
    [200, 200, 200, 200],
  );
  const inits = files.filter((_, index) => paths[index]?.endsWith('.mp4'));
  const segments = files.filter((_, index) => paths[index]?.endsWith('.m4s'));
  for (const [index, segment] of segments.entries()) {
    t.is(segment.headers['content-type'], 'video/mp4');
    const tracks = placedTracks(Buffer.concat([inits[index]?.rawPayload ?? Buffer.alloc(0), segment.rawPayload]));
    t.deepEqual(
      tracks.map(({ type }) => type),
      ['video', 'audio'],
    );
    t.is(tracks[0]?.samples.length, 180);
    t.true(tracks[0]?.samples[0]?.key);
  }
});

test('files of one recording that seem to overlap are all played', async (t) => {
  const opened = await openPlayback(t);
  await opened.recordMp4(6, 6);
  await opened.recordMp4(11, 6);
  await opened.recordMp4(13, 6, { id: 'other' });
  const { media } = await play(t, opened);
  t.deepEqual(checkMediaPlaylist(media.body), []);
  const dates = [...media.body.matchAll(/DATE-TIME:.*:(.*)$/gm)].map(([, second]) => second);
  t.deepEqual(dates, ['06.000Z', '12.000Z']);
});

test('players are counted once, with what they are sent', async (t) => {
  const opened = await openPlayback(t);
  await opened.recordMp4(0, 30);
  const { counters } = opened.registry.vhost('default').application('app');
  t.is((await opened.get(MASTER, {}, 'HEAD')).statusCode, 200);
  t.is(counters.publishers.playback, 0);
  const { paths } = await play(t, opened);
  for (const path of paths) await opened.get(path);
  t.deepEqual([counters.publishers.playback, counters.publishersSoFar.playback], [1, 1]);
  t.true(counters.out.totalBytes > 30_000);
});

test('the session of a clip plays that clip alone', async (t) => {
  const opened = await openPlayback(t);
  await opened.recordMp4(0, 30);
  const { list, paths } = await play(t, opened);
  const status = async (path: string) => (await opened.get(path)).statusCode;
  const [init = '', segment = ''] = paths;
  t.deepEqual([await status(list), await status(init), await status(segment)], [200, 200, 200]);
  t.is(await status(list.replace(/\/(\d+)-/, (_, start: string) => `/${Number(start) - 1000}-`)), 401);
  t.is(await status(list.replace('/stream/', '/other/')), 401);
  t.is(await status(list.replace(/stream\/[^/]+/, 'stream/token')), 401);
  t.is(await status(segment.replace(/_\d+\.m4s/, '_0.m4s')), 404, 'before the clip');
  t.is(await status(segment.replace(/_\d+\.m4s/, '_99.m4s')), 404);
  t.is(await status(init.replace(/[0-9a-f]{32}/, 'f'.repeat(32))), 404);
  for (const name of ['x.m4s', '..%2f..%2fx.mp4', 'media.m3u9', `${'9'.repeat(70)}.mp4`])
    t.is(await status(list.replace('media.m3u8', name)), 404, name);
});

test('what cannot be played has no playlist', async (t) => {
  const opened = await openPlayback(t);
  const { get } = opened;
  t.is((await get(MASTER)).statusCode, 404);
  await opened.recordMp4(0, 5);
  t.is((await get(MASTER)).statusCode, 404);
  for (const query of [
    '',
    '?start=x&duration=1',
    '?start=2026-03-05T12:00:00Z',
    '?start=9999-01-01T00:00:00Z&duration=1',
  ])
    t.is((await get(`/app/stream/recorded.m3u8${query}`)).statusCode, 400, query);
  t.is((await get('/off/stream/recorded.m3u8?start=x')).statusCode, 404);
});

test('a file that cannot be read is left out of a playlist', async (t) => {
  const opened = await openPlayback(t);
  await opened.record(7, { recordTime: 3000, finishTime: NOON + 10_000 }, Buffer.alloc(5000, 1));
  t.is((await opened.get(MASTER)).statusCode, 500);
  await opened.recordMp4(12, 6);
  const { media } = await play(t, opened, MASTER.replace('08.5Z', '08.6Z'));
  t.regex(media.body, /DATE-TIME:2026-03-05T12:00:12.000Z/);
});

test('a signed policy covers start and duration, and its session ends in time', async (t) => {
  const signedPolicy = { ...SIGNING, enables: { publishers: 'playback' } };
  const opened = await openPlayback(t, { vhost: { signedPolicy } });
  await opened.recordMp4(0, 30);
  const sign = (more: object) =>
    signUrl(ORIGIN + MASTER, { url_expire: Date.now() + 60_000, ...more }, SIGNING).slice(ORIGIN.length);
  t.is((await opened.get(MASTER)).statusCode, 401);
  t.is((await opened.get(sign({}).replace('duration=10', 'duration=20'))).statusCode, 401);
  const { list } = await play(t, opened, sign({}));
  t.is((await opened.get(list)).statusCode, 200);
  t.is((await opened.get(list.replace(/stream\/[^/]+/, 'stream/AAAA'))).statusCode, 401);
});

test('what a control server has opened is closed when the server stops', async (t) => {
  const ends: string[] = [];
  const guard = () => async () => ({ session: WEBHOOK_SESSION });
  const opened = await openPlayback(t, { admitting: { guards: [guard], webhookSessions: notedSessions(ends) } });
  await opened.recordMp4(0, 30);
  await play(t, opened);
  t.deepEqual(ends, []);
  await opened.publisher.close();
  t.deepEqual(ends, ['the server is stopping']);
});

test('an output playlist with that name stays', async (t) => {
  const outputProfiles = {
    outputProfile: [
      {
        name: 'p',
        outputStreamName: '${OriginStreamName}',
        playlists: [{ name: 'p', fileName: 'recorded', renditions: [] }],
        encodes: { videos: [{ name: 'v', bypass: true }] },
      },
    ],
  };
  const applications = [{ name: 'app', type: 'live', publishers: { playback: {} }, outputProfiles }];
  const opened = await openPlayback(t, { vhost: { applications } });
  await opened.recordMp4(0, 30);
  t.is((await opened.get(MASTER)).statusCode, 404);
  t.is((await opened.get(`/app/stream/get?${MASTER.split('?')[1]}`)).statusCode, 200);
});

test('subtitles of recordings are played as HLS: cues of the time of each segment, and of no other', async (t) => {
  const opened = await openPlayback(t);
  const [video, english] = [videoTrack(), subtitleTrack({ isDefault: true })];
  const korean = subtitleTrack({ id: 769, publicName: '한국어', language: 'ko' });
  const record = (second: number, tracks: readonly SubtitleTrack[], cues: readonly Packet[]) => {
    const packets = interleaved(videoPackets(video, { from: 100, to: 112, gop: 30 }), [...cues]);
    const times = { recordTime: 12_000, finishTime: NOON + (second + 12) * 1000 };
    return opened.record(second, times, recordedBytes([video, ...tracks], packets));
  };
  const cue = (track: SubtitleTrack, from: number, seconds: number, text: string) => {
    return { ...cuePacket(track, from * 1000, text, 'line:80%'), duration: seconds * 1000 };
  };
  await record(0, [english], [cue(english, 101, 2, 'one'), cue(english, 104.5, 4, 'two')]);
  await record(20, [english, korean], [cue(korean, 101, 1, '셋')]);
  const path = '/app/stream/recorded.m3u8?start=2026-03-05T12:00:00Z&duration=40';
  const master = await opened.get(path);
  t.deepEqual(checkMasterPlaylist(master.body), []);
  t.regex(master.body, /NAME="English",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,LANGUAGE="en"/);
  const [first = '', second = ''] = [...master.body.matchAll(/URI="(.*)"/g)].map(([, uri]) => `/app/stream/${uri}`);
  const texts = async (list: string) => {
    const { body, statusCode } = await opened.get(list);
    t.is(statusCode, 200);
    t.deepEqual(checkMediaPlaylist(body), []);
    const answers = await Promise.all(pathsIn(body, list).map((one) => opened.get(one)));
    for (const { statusCode: status, headers } of answers)
      t.deepEqual([status, headers['content-type']], [200, 'text/vtt; charset=utf-8']);
    return answers.map((answer) =>
      answer.body
        .split('\n\n')
        .slice(1)
        .map((text) => text.trim()),
    );
  };
  const shown = (from: string, to: string, text: string) => `00:00:${from} --> 00:00:${to} line:80%\n${text}`;
  t.deepEqual(await texts(first), [
    [shown('01.000', '03.000', 'one'), shown('04.500', '06.000', 'two')],
    [shown('06.000', '08.500', 'two')],
    [],
    [],
  ]);
  t.deepEqual(await texts(second), [[], [], [shown('13.000', '14.000', '셋')], []]);
  for (const name of ['subtitles_2.m3u8', `${'x'.repeat(10)}_0_0.vtt`]) {
    const { statusCode } = await opened.get(first.replace(/[^/]+$/, name));
    t.is(statusCode, 404, name);
  }
  const [segment = ''] = pathsIn((await opened.get(first)).body, first);
  for (const name of [segment.replace('_0.vtt', '_7.vtt'), segment.replace('_0_0', '_9_0')])
    t.is((await opened.get(name)).statusCode, 404, name);
});
