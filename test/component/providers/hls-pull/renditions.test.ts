import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { adtsFrames } from '../../../../src/codecs/aac-adts.ts';
import { id3Tag } from '../../../../src/containers/id3.ts';
import { FileServer } from '../../../support/hls/file-server.ts';
import { lastOf, longestStep, pullHls, type PulledHls } from '../../../support/hls/hls-puller.ts';
import { until } from '../../../support/time/until.ts';

const SECONDS = 4;
/** Frames of the video of a file server in that time. */
const FRAMES = 10 * SECONDS;
/** Longest distance of two frames, and of two audio frames, in seconds. */
const [FRAME, SOUND] = [0.1, 1024 / 48_000];
const FMP4 = ['-hls_segment_type', 'fmp4'];

/** When the last frame of a playlist is shown, in seconds of its own times. */
async function lastTime(server: FileServer, playlist: string): Promise<number> {
  const shown = ['-show_entries', 'packet=pts_time', '-of', 'csv=p=0'];
  // the files of fragmented MP4 are named alike whatever they are
  const args = ['-v', 'error', '-allowed_extensions', 'ALL', ...shown, server.url(playlist)];
  const { stdout } = await promisify(execFile)('ffprobe', args);
  return Math.max(...stdout.split('\n').flatMap((line) => (line === '' ? [] : Number.parseFloat(line))));
}

/** All of a stream has come, its audio as far from its video as it is at the server. */
function isWhole(t: ExecutionContext, pulled: PulledHls, frames: number, apart: number, tolerance = 0.03): void {
  t.is(pulled.tracks.length, 1);
  t.deepEqual(
    pulled.tracks[0]?.map(({ codec }) => codec),
    ['H264', 'AAC'],
  );
  t.is(pulled.of('video').length, frames);
  t.true(Math.abs(lastOf(pulled, 'video') - lastOf(pulled, 'audio') - apart) < tolerance, `${apart}`);
  t.true(longestStep(pulled, 'video') < 3 * FRAME, String(longestStep(pulled, 'video')));
  t.true(longestStep(pulled, 'audio') < 3 * SOUND, String(longestStep(pulled, 'audio')));
  t.deepEqual(pulled.lines, []);
}

for (const [form, options] of [
  ['fragmented MP4', FMP4],
  ['MPEG-TS', []],
] as const)
  test(`audio in a playlist of its own comes with the video: ${form}`, async (t) => {
    const server = await FileServer.start(t);
    await server.separate('list', SECONDS, ...options);
    const pulled = await pullHls(t, server.url('list.m3u8'));
    t.is(await pulled.ended, 'the playlist has ended');
    const [audio, video] = [await lastTime(server, 'list_0.m3u8'), await lastTime(server, 'list_1.m3u8')];
    isWhole(t, pulled, FRAMES, video - audio);
  });

for (const [form, options] of [
  ['encrypted segments', (server: FileServer) => ['-hls_key_info_file', server.key('secret.key')]],
  ['segments of a single file', () => ['-hls_flags', 'single_file']],
  ['fragmented MP4', () => FMP4],
] as const)
  test(`audio and video of one playlist come whole: ${form}`, async (t) => {
    const server = await FileServer.start(t);
    await server.ended('list.m3u8', SECONDS, ...options(server));
    const pulled = await pullHls(t, server.url('list.m3u8?token=1'));
    t.is(await pulled.ended, 'the playlist has ended');
    t.is(pulled.tracks.length, 1);
    t.is(pulled.of('video').length, FRAMES);
    t.true(longestStep(pulled, 'audio') < 3 * SOUND, String(longestStep(pulled, 'audio')));
  });

/** A playlist of packed audio, in segments of a second. @param begin time of the first sample, in ticks of 90 kHz */
async function packed(server: FileServer, seconds: number, begin: number): Promise<number> {
  await server.encode('-vn', '-t', `${seconds}`, '-f', 'adts', 'all.aac');
  const all = server.read('all.aac');
  const frames: Buffer[] = [];
  let at = 0;
  for (const { header } of adtsFrames(all)) frames.push(all.subarray(at, (at += header.frameLength)));
  const lines = ['#EXTM3U', '#EXT-X-TARGETDURATION:2'];
  for (let first = 0; first < frames.length; first += 47) {
    const data = Buffer.alloc(8);
    data.writeBigUInt64BE(BigInt(Math.round(begin + first * 1920)) % 2n ** 33n);
    const tag = id3Tag([{ id: 'PRIV', owner: 'com.apple.streaming.transportStreamTimestamp', data }]);
    server.write(`all${first}.aac`, Buffer.concat([tag, ...frames.slice(first, first + 47)]));
    lines.push('#EXTINF:1.003,', `all${first}.aac`);
  }
  server.write('packed.m3u8', [...lines, '#EXT-X-ENDLIST', ''].join('\n'));
  return (begin + (frames.length - 1) * 1920) / 90_000;
}

test('packed audio comes with the video of MPEG-TS, in segments of other lengths and an encrypted playlist', async (t) => {
  const server = await FileServer.start(t);
  await server.ended('video.m3u8', SECONDS, '-an', '-hls_key_info_file', server.key('video.key'));
  const last = await packed(server, SECONDS, 126_000);
  server.write(
    'master.m3u8',
    [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="other",URI="none.m3u8"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="main",DEFAULT=YES,URI="packed.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=100000,CODECS="avc1.42c01e,mp4a.40.2",AUDIO="a"',
      'video.m3u8',
      '',
    ].join('\n'),
  );
  const pulled = await pullHls(t, server.url('master.m3u8'));
  t.is(await pulled.ended, 'the playlist has ended');
  isWhole(t, pulled, FRAMES, (await lastTime(server, 'video.m3u8')) - last);
});

/** Puts two playlists that have ended behind each other. */
function joinPlaylists(server: FileServer, name: string, first: string, second: string): void {
  const parts = [first, second].map((part) => server.read(part).toString());
  const body = (text: string): string =>
    text.replace(
      /#EXTM3U\n|#EXT-X-(?:VERSION|TARGETDURATION|PLAYLIST-TYPE|MEDIA-SEQUENCE|INDEPENDENT-SEGMENTS|ENDLIST).*\n/g,
      '',
    );
  const head = '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n';
  server.write(name, `${head}${parts.map(body).join('#EXT-X-DISCONTINUITY\n')}#EXT-X-ENDLIST\n`);
}

for (const [form, options] of [
  ['fragmented MP4', FMP4],
  ['MPEG-TS', []],
] as const)
  test(`a stream goes on without a pause behind a discontinuity: ${form}`, async (t) => {
    const server = await FileServer.start(t);
    await server.separate('one', SECONDS / 2, ...options, '-output_ts_offset', '5000');
    await server.separate('two', SECONDS / 2, ...options);
    for (const number of [0, 1])
      joinPlaylists(server, `list_${number}.m3u8`, `one_${number}.m3u8`, `two_${number}.m3u8`);
    server.write('list.m3u8', server.read('one.m3u8').toString().replaceAll('one_', 'list_'));
    const pulled = await pullHls(t, server.url('list.m3u8'));
    t.is(await pulled.ended, 'the playlist has ended');
    const [audio, video] = [await lastTime(server, 'two_0.m3u8'), await lastTime(server, 'two_1.m3u8')];
    // audio frames follow each other exactly where their times are no further apart than this
    isWhole(t, pulled, FRAMES, video - audio, 0.09);
  });

test('a stream with audio and video together goes on without a pause behind a discontinuity', async (t) => {
  const server = await FileServer.start(t);
  // a jump ahead that is no longer than a pause may be
  await server.ended('one.m3u8', SECONDS / 2);
  await server.ended('two.m3u8', SECONDS / 2, '-output_ts_offset', '8');
  joinPlaylists(server, 'list.m3u8', 'one.m3u8', 'two.m3u8');
  const pulled = await pullHls(t, server.url('list.m3u8'));
  t.is(await pulled.ended, 'the playlist has ended');
  t.is(pulled.of('video').length, FRAMES);
  t.true(longestStep(pulled, 'video') < 1, String(longestStep(pulled, 'video')));
  t.true(longestStep(pulled, 'audio') < 1, String(longestStep(pulled, 'audio')));
});

test('a stream ends when its audio cannot be read any more', async (t) => {
  const server = await FileServer.start(t, ({ url = '' }, response) => {
    const isGone = /list_0_[1-9]/.test(url);
    if (isGone) response.writeHead(410).end();
    return isGone;
  });
  await server.separate('list', 2 * SECONDS, ...FMP4);
  const pulled = await pullHls(t, server.url('list.m3u8'));
  t.regex(await pulled.ended, /list_0_3\.m4s: the server answered with 410/);
  t.true(pulled.of('audio').length > 0);
});

test('audio that trickles ends a stream after the silence that is allowed, and does not hold the video back', async (t) => {
  const server = await FileServer.start(t, ({ url = '' }, response) => {
    const isSlow = /list_0_[1-9]/.test(url);
    if (!isSlow) return false;
    // the head of a box that is never whole
    response.writeHead(200).write(Buffer.from('0010000066726565', 'hex'));
    const timer = setInterval(() => response.write('\0'), 100);
    response.once('close', () => clearInterval(timer));
    return true;
  });
  await server.separate('list', 4 * SECONDS, ...FMP4);
  const pulled = await pullHls(t, server.url('list.m3u8'), 3000);
  await until('there is video', () => pulled.of('video').length > 25);
  t.regex(await pulled.ended, /^no audio for \d+ ms$/);
});
