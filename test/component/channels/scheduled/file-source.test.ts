import { execFile } from 'node:child_process';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { MediaFiles } from '../../../../src/channels/scheduled/media-files.ts';
import { id3Tag } from '../../../../src/containers/id3.ts';
import { TsMuxer } from '../../../../src/containers/mpegts/muxer.ts';
import { decode } from '../../../support/media/decoder.ts';
import {
  byTrack,
  ffmpeg,
  mediaFolder,
  nutOf,
  processesReading,
  readUnits,
  writePattern,
  type Pattern,
  type ReadFile,
} from '../../../support/media/media-files.ts';
import { dataTrack, eventPacket } from '../../../support/media/packets.ts';
import { twoDescriptions } from '../../../support/media/two-descriptions.ts';
import { until } from '../../../support/time/until.ts';

const { folder, remove } = await mediaFolder();
test.after.always(remove);
const files = new MediaFiles(folder, 'ffmpeg');
const path = (name: string): string => join(folder, name);

const VPX = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '200k', '-g', '50'];
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
const B_FRAMES = [...X264, '-preset', 'veryfast', '-bf', '3'];

/** Codecs, and how many frames of video there are for 4 s. */
const CASES: Record<string, { pattern: Pattern; video?: string; audio?: string; frames?: number }> = {
  'b-frames.mp4': { pattern: { video: B_FRAMES }, video: 'H264', audio: 'AAC', frames: 100 },
  'plain.mov': { pattern: { video: X264 }, video: 'H264', audio: 'AAC', frames: 100 },
  'plain.ts': { pattern: { video: B_FRAMES }, video: 'H264', audio: 'AAC', frames: 100 },
  'plain.mkv': { pattern: { audio: ['-c:a', 'ac3'] }, video: 'H264', audio: 'AC3', frames: 100 },
  'plain.webm': { pattern: { video: VPX, audio: ['-c:a', 'libopus'] }, video: 'VP8', audio: 'OPUS', frames: 100 },
  'sound.mp3': { pattern: { video: [] }, audio: 'MP3' },
  'sound.wav': { pattern: { video: [], audio: ['-c:a', 'pcm_s16le'] }, audio: 'AAC' },
  'odd-rate.mp4': { pattern: { rate: '24000/1001' }, video: 'H264', audio: 'AAC', frames: 96 },
  'pictures.mp4': { pattern: { audio: [] }, video: 'H264', frames: 100 },
  'old.avi': {
    pattern: { video: ['-c:v', 'mpeg4'], size: '162x92', audio: ['-c:a', 'pcm_s16le'] },
    video: 'H264',
    audio: 'AAC',
    frames: 100,
  },
  'odd-size.mkv': { pattern: { video: ['-c:v', 'ffv1'], size: '161x91' }, video: 'H264', audio: 'AAC', frames: 100 },
};

for (const [name, { pattern, video, audio, frames }] of Object.entries(CASES)) {
  test(`${name} comes out as ffmpeg takes it`, async (t) => {
    // LAME is what makes MP3
    await writePattern(path(name), name.endsWith('.mp3') ? { ...pattern, audio: ['-c:a', 'libmp3lame'] } : pattern);
    const { units, failure } = await readUnits(files, `file://${name}`);
    t.is(failure, undefined);
    const tracks = byTrack(units);
    t.deepEqual([...tracks.keys()].map(({ id, codec }) => `${id} ${codec}`).sort(), [
      ...(video === undefined ? [] : [`0 ${video}`]),
      ...(audio === undefined ? [] : [`100 ${audio}`]),
    ]);
    for (const [track, packets] of tracks) {
      t.true(packets.every(({ dts }, i) => i === 0 || dts > (packets[i - 1]?.dts ?? 0)));
      t.true(packets.every(({ dts, pts }) => pts >= dts));
      const lengthMs =
        Math.max(...packets.map(({ shownAt }) => shownAt)) - Math.min(...packets.map(({ shownAt }) => shownAt));
      t.true(Math.abs(lengthMs - 4000) < 150, `${track.type} of ${lengthMs} ms`);
      if (track.type === 'video') {
        t.true(packets[0]?.key);
        t.is(packets.length, frames ?? 0);
      }
      t.is(await decode(nutOf(track, packets), 'nut'), '');
    }
    t.true(Math.abs((files.lengthOf(`file://${name}`) ?? 0) - 4000) < 150);
  });
}

test('the pictures of a slide show come as far apart as they are', async (t) => {
  const video = [...X264, '-g', '1'];
  await writePattern(path('slides.mp4'), { seconds: 30, rate: '1/3', video, audio: [] });
  const { units, failure } = await readUnits(files, 'file://slides.mp4');
  t.is(failure, undefined);
  t.deepEqual(
    units.map(({ at }) => Math.round(at - (units[0]?.at as number))),
    Array.from({ length: 10 }, (_, i) => i * 3000),
  );
});

test('a position is reached from the key frame in front of it, also where there is no index', async (t) => {
  await writePattern(path('seek.mp4'), { seconds: 14, video: B_FRAMES });
  await ffmpeg('-i', path('seek.mp4'), '-c', 'copy', path('seek.ts'));
  for (const name of ['seek.mp4', 'seek.ts']) {
    const { units } = await readUnits(files, `file://${name}`, 11_500);
    const video = units.filter(({ track }) => track.type === 'video');
    const [first] = video;
    t.true(first?.key);
    t.true(Math.abs((first?.shownAt ?? 0) - 10_000) < 50, `${name} begins at ${first?.shownAt}`);
    t.is(video.length, 100);
    t.true(units.filter(({ track }) => track.type === 'audio').length > 180);
  }
});

test('a turned picture is turned, a cover is none, and edit lists are followed', async (t) => {
  await writePattern(path('upright.mp4'), { video: B_FRAMES });
  await ffmpeg('-i', path('upright.mp4'), '-c', 'copy', '-metadata:s:v', 'rotate=90', path('turned.mp4'));
  const turned = byTrack((await readUnits(files, 'file://turned.mp4')).units);
  const picture = [...turned.keys()].find(({ type }) => type === 'video');
  t.deepEqual(picture?.type === 'video' && [picture.width, picture.height], [90, 160]);
  await ffmpeg('-i', path('upright.mp4'), '-frames:v', '1', path('cover.png'));
  await ffmpeg(
    ...['-i', path('upright.mp4'), '-i', path('cover.png'), '-map', '0:a', '-map', '1', '-c:a', 'libmp3lame'],
    ...['-id3v2_version', '3', '-disposition:v', 'attached_pic', path('cover.mp3')],
  );
  const sound = byTrack((await readUnits(files, 'file://cover.mp3')).units);
  t.deepEqual(
    [...sound.keys()].map(({ codec }) => codec),
    ['MP3'],
  );
  await ffmpeg('-ss', '1.5', '-i', path('upright.mp4'), '-c', 'copy', path('edited.mp4'));
  const { units } = await readUnits(files, 'file://edited.mp4');
  const last = Math.max(...units.map(({ shownAt }) => shownAt));
  t.true(Math.abs(last - 2480) < 100, `the last frame is at ${last}`);
  t.true(units[0]?.key);
});

test('the size and the order of frames may change within a file', async (t) => {
  const plain = [...X264, '-bf', '0'];
  await writePattern(path('plain-part.mp4'), { seconds: 2, video: plain, audio: [] });
  await writePattern(path('large-part.mp4'), { seconds: 2, size: '320x180', video: B_FRAMES, audio: [] });
  const parts: ReadFile['units'][] = [];
  for (const name of ['plain-part', 'large-part']) {
    await ffmpeg('-i', path(`${name}.mp4`), '-c', 'copy', path(`${name}.ts`));
    parts.push((await readUnits(files, `file://${name}.mp4`)).units);
  }
  await ffmpeg('-i', `concat:${path('plain-part.ts')}|${path('large-part.ts')}`, '-c', 'copy', path('sizes.ts'));
  await ffmpeg('-i', `concat:${path('large-part.ts')}|${path('plain-part.ts')}`, '-c', 'copy', path('sizes-back.ts'));
  const [one = [], other = []] = parts;
  await writeFile(path('descriptions.mp4'), twoDescriptions(one, other, 3600));
  await writeFile(path('descriptions-back.mp4'), twoDescriptions(other, one, 3600));
  for (const [name, widths] of [
    ['sizes.ts', [160, 320]],
    ['sizes-back.ts', [320, 160]],
    ['descriptions.mp4', [160, 320]],
    ['descriptions-back.mp4', [320, 160]],
  ] as const) {
    const { units, failure } = await readUnits(files, `file://${name}`);
    t.is(failure, undefined);
    t.is(units.length, 100, name);
    for (const [index, { dts, pts }] of units.entries()) {
      t.true(pts >= dts, `${name}: ${dts} ${pts}`);
      if (index > 0) t.true(dts - (units[index - 1]?.dts ?? 0) >= 90, `${name}: ${units[index - 1]?.dts} -> ${dts}`);
    }
    // files that were only put together begin anew where the last frame was decoded, not shown
    const most = name.endsWith('.ts') ? 3600 : 1;
    const shown = units.map(({ pts }) => pts).sort((a, b) => a - b);
    t.true(
      shown.every((pts, index) => index === 0 || Math.abs(pts - (shown[index - 1] ?? 0) - 3600) <= most),
      name,
    );

    const tracks = byTrack(units);
    t.deepEqual(
      [...tracks.keys()].map((track) => track.type === 'video' && track.width),
      [...widths],
      name,
    );
    for (const [track, packets] of tracks) t.is(await decode(nutOf(track, packets), 'nut'), '', name);
  }
});

test('timed ID3 tags of MPEG-TS are passed on where that is asked for', async (t) => {
  await writePattern(path('tagged.mp4'), { video: B_FRAMES });
  const { units } = await readUnits(files, 'file://tagged.mp4');
  const data = dataTrack({ id: 200 });
  const tag = (ms: number): Buffer => id3Tag([{ id: 'TXXX', description: 'at', value: String(ms) }]);
  for (const kinds of [['video', 'audio'], ['audio']]) {
    const media = units.filter(({ track: { type } }) => kinds.includes(type));
    const muxer = new TsMuxer([...new Set(media.map(({ track }) => track)), data]);
    const ts: Buffer[] = [];
    for (const unit of media) {
      // decoding begins below zero, which MPEG-TS does not have
      const moved = unit.track.timebase.den / 2;
      ts.push(muxer.write({ ...unit, dts: unit.dts + moved, pts: unit.pts + moved }));
      if (unit.track.type !== 'audio' || unit.dts % (24 * 1024) !== 0) continue;
      ts.push(muxer.write(eventPacket(data, Math.round((unit.at + 500) * 90), tag(Math.round(unit.at)))));
    }
    const name = `tagged-${kinds.length}.ts`;
    await writeFile(path(name), Buffer.concat(ts));
    const tagged = await readUnits(files, `file://${name}`, 0, 1, true);
    t.is(tagged.failure, undefined);
    const events = tagged.units.filter(({ track }) => track.type === 'data');
    t.deepEqual(
      events.map((event) => event.data),
      [0, 512, 1024, 1536, 2048, 2560, 3072, 3584].map(tag),
    );
    const [first] = tagged.units.filter(({ track }) => track.type === 'audio');
    for (const [index, { at, track }] of events.entries()) {
      t.like(track, { id: 200, codec: 'ID3v2' });
      t.true(Math.abs(at - (first?.at ?? 0) - index * 512) < 2, `${at}`);
    }
    const without = (await readUnits(files, `file://${name}`)).units;
    t.is(without.length, tagged.units.length - events.length);
    t.false(without.some(({ track }) => track.type === 'data'));
    const joined = await readUnits(files, `file://${name}`, 2500, 1, true);
    t.is(joined.units.filter(({ track }) => track.type === 'data').length, kinds.length === 1 ? 3 : 4);
  }
});

test('sound of several languages fills as many tracks as are wished for', async (t) => {
  await writePattern(path('one.mp4'));
  await ffmpeg(
    ...['-i', path('one.mp4'), '-map', '0:v', '-map', '0:a', '-map', '0:a', '-map', '0:a', '-c', 'copy'],
    ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra', path('languages.mp4')],
  );
  const tracks = [...byTrack((await readUnits(files, 'file://languages.mp4', 0, 2)).units).keys()];
  t.deepEqual(
    tracks.sort((a, b) => a.id - b.id).map(({ id, language, name }) => [id, language, name]),
    [
      [0, undefined, 'Video'],
      [100, 'eng', 'Audio 0'],
      [101, 'fra', 'Audio 1'],
    ],
  );
});

test('only files below the folder of a channel are opened, and none that open others', async (t) => {
  const outside = await mediaFolder();
  t.teardown(outside.remove);
  await writePattern(join(outside.folder, 'secret.mp4'));
  await symlink(join(outside.folder, 'secret.mp4'), path('link.mp4'));
  await mkdir(path('folder'));
  await new Promise<void>((resolve, reject) =>
    execFile('mkfifo', [path('pipe.mp4')], (error) => (error === null ? resolve() : reject(error))),
  );
  const secret = join(outside.folder, 'secret.mp4');
  await writeFile(path('list.ffconcat'), `ffconcat version 1.0\nfile '${secret}'\n`);
  await writeFile(
    path('list.m3u8'),
    `#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile://${secret}\n#EXT-X-ENDLIST\n`,
  );
  await writeFile(
    path('session.sdp'),
    'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n',
  );
  await writeFile(path('text.mp4'), 'no media at all');
  const reasons = new Map<string, string | undefined>();
  const urls = [
    'link.mp4',
    'folder',
    'pipe.mp4',
    'list.ffconcat',
    'list.m3u8',
    'session.sdp',
    'text.mp4',
    'missing.mp4',
  ];
  for (const url of [...urls, '../x', '%2e%2e/x', '/etc/passwd', 'a%00b', '%zz'])
    reasons.set(url, (await readUnits(files, `file://${url}`)).failure);
  for (const [url, reason] of reasons) t.truthy(reason, url);
  t.is(reasons.get('link.mp4'), 'the file is outside MediaRootDir');
  t.is(reasons.get('folder'), 'it is not a regular file');
  t.is(reasons.get('pipe.mp4'), 'it is not a regular file');
  t.is(reasons.get('missing.mp4'), 'the file does not exist');
  t.is(reasons.get('../x'), 'the URL does not name a file below MediaRootDir');
  t.regex(reasons.get('list.m3u8') ?? '', /ffmpeg cannot read the file/);
});

test('a file that changes is looked at anew', async (t) => {
  await writePattern(path('changes.mp4'), { seconds: 2 });
  const unreadable: string[] = [];
  const look = (): Promise<void> => files.measure(['file://changes.mp4'], (url) => unreadable.push(url));
  await look();
  t.true(Math.abs((files.lengthOf('file://changes.mp4') ?? 0) - 2000) < 100);
  await writePattern(path('changes.mp4'), { seconds: 5 });
  await look();
  t.true(Math.abs((files.lengthOf('file://changes.mp4') ?? 0) - 5000) < 100);
  t.deepEqual(unreadable, []);
  await truncate(path('changes.mp4'), 3000);
  await look();
  t.deepEqual(unreadable, ['file://changes.mp4']);
});

test.serial('closed file sources leave no descriptors and no programs', async (t) => {
  await writePattern(path('leak.mp4'), { seconds: 2 });
  for (let i = 0; i < 5; i++) t.is((await readUnits(files, 'file://leak.mp4')).failure, undefined);
  for (let i = 0; i < 5; i++) t.is((await readUnits(files, 'file://missing.mp4')).failure, 'the file does not exist');
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
});
