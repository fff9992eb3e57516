import { mkdir, open, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parseAvcConfig } from '../../../../src/codecs/h264-config.ts';
import type { SlateTrack } from '../../../../src/channels/standby/slate-command.ts';
import { SlatePass } from '../../../../src/channels/standby/slate-pass.ts';
import { Slates, type Slate } from '../../../../src/channels/standby/slates.ts';
import type { ItemUnit } from '../../../../src/channels/scheduled/item-source.ts';
import { MediaFiles } from '../../../../src/channels/scheduled/media-files.ts';
import { sameFormat, type MediaTrack, type VideoTrack } from '../../../../src/core/track.ts';
import { probeFfmpeg } from '../../../../src/transcode/probe.ts';
import { mediaFolder, nutOf, readUnits, writePattern } from '../../../support/media/media-files.ts';
import { readNumbers, writeNumbered } from '../../../support/media/numbered-files.ts';
import { audioTrack, AVC_BASELINE, AVC_HIGH, videoTrack } from '../../../support/media/packets.ts';

const capabilities = await probeFfmpeg('ffmpeg');
const { folder, remove } = await mediaFolder();
test.after.always(remove);

const VIDEO: SlateTrack = { track: videoTrack({ width: 320, height: 180 }), framerate: 25, bitrate: 500_000 };
const AUDIO: SlateTrack = { track: audioTrack(), framerate: 0, bitrate: 0 };

let count = 0;
function openSlates(own = join(folder, `slates-${count++}`)) {
  const slates = new Slates({ folder: own, base: folder, capabilities: async () => capabilities });
  const prepare = (tracks: readonly SlateTrack[], file?: string, text = '') => slates.prepare({ tracks, file, text });
  return { own, prepare };
}

/** All units of a slate, by id of their track. */
async function read(slate: Slate, frameMs = 40) {
  await using file = await open(slate.path);
  const pass = new SlatePass(file, slate.tracks, frameMs);
  const units = new Map<number, ItemUnit[]>(slate.tracks.map(({ id }) => [id, []]));
  do {
    await pass.fill();
    for (let unit = pass.queue.take(); unit !== undefined; unit = pass.queue.take())
      units.get(unit.track.id)?.push(unit);
  } while (pass.length === undefined || pass.queue.next !== undefined);
  return { units, tracks: pass.tracks, length: pass.length };
}

async function numbers(slate: Slate) {
  const { units, tracks } = await read(slate);
  const video = tracks.find(({ type }) => type === 'video') as MediaTrack;
  return readNumbers(nutOf(video, units.get(video.id) ?? []));
}

test('a file becomes a slate in the settings of the tracks, with all its frames', async (t) => {
  const { prepare } = openSlates();
  await writeNumbered(join(folder, 'pause.mp4'), { item: 3, frames: 50, rate: 25, gop: 50 });
  const high = videoTrack({ id: 4, name: 'camera', width: 640, height: 360, config: AVC_HIGH });
  const slate = await prepare([{ ...VIDEO, track: high }, AUDIO], 'pause.mp4');
  const { units, tracks, length } = await read(slate);
  const video = tracks.find(({ type }) => type === 'video') as VideoTrack;
  t.like(video, { id: 4, name: 'camera', width: 640, height: 360 });
  t.is(parseAvcConfig(video.config as Buffer).profile, 100);
  const frames = units.get(4) ?? [];
  t.is(frames.length, 50);
  t.deepEqual(
    frames.flatMap(({ key }, index) => (key ? [index] : [])),
    [0, 25],
  );
  t.true(
    frames.every(({ pts, dts }) => pts === dts),
    'nothing is reordered',
  );
  t.true(Math.abs((length ?? 0) - 2000) < 50, String(length));
  t.deepEqual(
    (await numbers(slate)).map(({ item, frame }) => [item, frame]),
    Array.from({ length: 50 }, (_, frame) => [3, frame]),
  );
});

test('a slate of a file is cut to the frame rate of the publisher', async (t) => {
  const { prepare } = openSlates();
  await writePattern(join(folder, 'fast.mp4'), { seconds: 2, rate: '50' });
  const { units } = await read(await prepare([VIDEO, AUDIO], 'fast.mp4'));
  const times = (units.get(VIDEO.track.id) ?? []).map(({ shownAt }) => Math.round(shownAt));
  t.true(
    times.slice(1).every((time, index) => time - (times[index] as number) === 40),
    String(times),
  );
});

test('a slate has other parameter sets than the same encoder makes of the video it stands in for', async (t) => {
  const { prepare } = openSlates();
  const publisher = join(folder, 'publisher.mp4');
  await writeNumbered(publisher, { item: 1, frames: 50, rate: 25, gop: 25 });
  const info = await readUnits(new MediaFiles(folder, 'ffmpeg'), 'file://publisher.mp4');
  const track = info.units.find((unit) => unit.track.type === 'video')?.track as VideoTrack;
  t.truthy(track.config);
  const { tracks } = await read(await prepare([{ track, framerate: 25, bitrate: 0 }], 'publisher.mp4'));
  t.false(sameFormat(track, tracks[0] as MediaTrack));
});

const CODECS: Record<string, readonly [MediaTrack, MediaTrack['codec']]> = {
  'H.264 of the baseline profile': [videoTrack({ config: AVC_BASELINE }), 'H264'],
  'H.265': [videoTrack({ codec: 'H265' }), 'H265'],
  VP8: [videoTrack({ codec: 'VP8' }), 'VP8'],
  'AAC of 44.1 kHz, mono': [audioTrack({ samplerate: 44_100, channels: 1 }), 'AAC'],
  'AAC of 5.1': [audioTrack({ channels: 6 }), 'AAC'],
  Opus: [audioTrack({ codec: 'OPUS', samplerate: 48_000, channels: 2 }), 'OPUS'],
};
for (const [name, [track, codec]] of Object.entries(CODECS)) {
  test(`a slate is generated in ${name}`, async (t) => {
    const { prepare } = openSlates();
    const slate = await prepare([{ track, framerate: 30, bitrate: 0 }], undefined, "It's soon: 100%, [really];");
    const { units, tracks, length } = await read(slate);
    t.is(tracks[0]?.codec, codec);
    if (track.type === 'audio') t.like(tracks[0], { samplerate: track.samplerate, channels: track.channels });
    else t.like(tracks[0], { width: track.width, height: track.height });
    t.true((units.get(track.id)?.length ?? 0) >= 290);
    t.true(Math.abs((length ?? 0) - 10_000) < 100, String(length));
  });
}

test('slates of the same settings are encoded once, also of several runs', async (t) => {
  const { own, prepare } = openSlates();
  const [one, other] = await Promise.all([prepare([VIDEO]), prepare([{ ...VIDEO, framerate: 25.1 }])]);
  t.is(one.path, other.path);
  t.is((await openSlates(own).prepare([VIDEO])).path, one.path);
  t.not((await prepare([{ ...VIDEO, framerate: 50 }])).path, one.path);
  t.is((await readdir(own)).length, 2);
});

test('a file that was replaced is encoded anew', async (t) => {
  const { prepare } = openSlates();
  const file = join(folder, 'changed.mp4');
  await writePattern(file, { seconds: 1 });
  const before = await prepare([AUDIO], file);
  await rm(file);
  await writePattern(file, { seconds: 2 });
  t.not((await prepare([AUDIO], file)).path, before.path);
});

test('the oldest slates leave when there are many', async (t) => {
  const { own, prepare } = openSlates();
  await mkdir(own);
  for (let index = 0; index < 100; index++) await writeFile(join(own, `${index}.nut`), '');
  await prepare([AUDIO]);
  t.is((await readdir(own)).length, 100);
});

async function refused(t: ExecutionContext, tracks: readonly SlateTrack[], file: string | undefined, reason: RegExp) {
  const { own, prepare } = openSlates();
  await t.throwsAsync(prepare(tracks, file), { name: 'MediaError', message: reason });
  const left = await readdir(own).catch(() => []);
  t.deepEqual(left, [], 'nothing is left of it');
}

test('what cannot become a slate is named', async (t) => {
  await writeFile(join(folder, 'text.mp4'), 'no media');
  await writeFile(join(folder, 'list.m3u8'), '#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n');
  await writeFile(join(folder, 'empty.mp4'), '');
  await refused(t, [VIDEO], 'missing.mp4', /missing\.mp4: ENOENT/);
  await refused(t, [VIDEO], 'text.mp4', /text\.mp4: /);
  await refused(t, [VIDEO], 'list.m3u8', /list\.m3u8: /);
  await refused(t, [VIDEO], 'empty.mp4', /empty\.mp4: /);
  await refused(t, [VIDEO], '/dev/zero', /not a regular file/);
  await refused(t, [VIDEO], '.', /not a regular file/);
  await refused(t, [{ ...VIDEO, track: videoTrack({ codec: 'AV1' }) }, AUDIO], undefined, /AV1 cannot be encoded/);
});

test('a slate that has no room on the disk fails', async (t) => {
  const full = join(folder, 'full');
  await writeFile(full, '');
  const { prepare } = openSlates(full);
  await t.throwsAsync(prepare([AUDIO]), { name: 'MediaError', message: /ENOTDIR|EEXIST/ });
});

test('a slate file that is cut off, or is none, fails', async (t) => {
  const { prepare } = openSlates();
  const slate = await prepare([VIDEO, AUDIO]);
  for (const bytes of ['', 'no NUT at all, whatever its name says, and longer than the head of one']) {
    await writeFile(slate.path, bytes);
    await t.throwsAsync(read(slate), { name: 'MediaError' });
  }
});
