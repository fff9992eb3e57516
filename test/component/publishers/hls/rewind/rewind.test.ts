import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { DiskCalls } from '../../../../../src/core/disk-calls.ts';
import { kilnError } from '../../../../../src/errors.ts';
import { Disks } from '../../../../../src/core/disks.ts';
import { createLogger, FaultLog } from '../../../../../src/log/log.ts';
import { PastCounts } from '../../../../../src/publishers/hls/answer/counts.ts';
import { MediaCache } from '../../../../../src/publishers/hls/answer/media-cache.ts';
import type { Media } from '../../../../../src/publishers/hls/answer/played-stream.ts';
import type { FollowedSegment } from '../../../../../src/publishers/hls/answer/segment-followers.ts';
import { Text } from '../../../../../src/publishers/hls/answer/text.ts';
import { appended } from '../../../../../src/publishers/hls/rewind/append-files.ts';
import { journalLine, readJournal } from '../../../../../src/publishers/hls/rewind/journal.ts';
import { Rewind, type RewindOptions } from '../../../../../src/publishers/hls/rewind/rewind.ts';
import { RunFiles } from '../../../../../src/publishers/hls/rewind/run-files.ts';
import { until } from '../../../../support/time/until.ts';
import { stayAwake } from '../../../../support/time/stay-awake.ts';

const LIST = 'chunklist_0_video_abcdefgh_llhls.m3u8';
const INIT = 'init_0_video_abcdefgh_llhls.m4s';
const nameOf = (msn: number): string => `seg_0_${msn}_video_abcdefgh_llhls.m4s`;

function segment(msn: number, more: Partial<FollowedSegment> = {}): FollowedSegment {
  const body = [Buffer.from(`media of `), Buffer.from(String(msn))];
  return {
    list: LIST,
    name: nameOf(msn),
    msn,
    duration: 2,
    wallClock: msn * 2000,
    discontinuity: false,
    discontinuitySequence: 0,
    gap: false,
    breaks: '',
    breaksBefore: '',
    bytes: 10,
    init: { name: INIT, data: Buffer.from('init') },
    body: () => body,
    ...more,
  };
}

async function temporary(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rewind-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'run');
}

/** Files of a kind in a folder. */
async function filesOf(folder: string, kind: 'media' | 'journal'): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith(`.${kind}`)).sort();
}

/** Writes segments in packs of their own, one after another. */
async function stored(folder: string, ...segments: readonly FollowedSegment[]): Promise<void> {
  for (const segment of segments) {
    const files = new RunFiles(folder);
    const { init, body } = segment;
    if (init !== undefined) await files.write(init.name, [init.data]);
    await files.store([{ segment, body: segment.gap ? undefined : await body() }]);
    await files.close();
  }
}

/** Removes the pack that begins with a segment. */
async function lose(folder: string, msn: number): Promise<string> {
  const pack = (await filesOf(folder, 'media')).find((name) => name.startsWith(`pack_${msn}_`)) ?? '';
  await unlink(join(folder, pack));
  return join(folder, pack);
}

async function open(t: ExecutionContext, folder: string, more: Partial<RewindOptions> = {}) {
  const log = createLogger('silent');
  const faults = new FaultLog(log);
  const rewind = new Rewind({
    disk: new Disks().open(folder),
    files: new RunFiles(folder),
    maxSeconds: 3600,
    event: false,
    minFree: 0,
    query: '',
    cache: new MediaCache(1e6),
    counts: new PastCounts(),
    elsewhere: () => Promise.resolve([]),
    onFull: () => t.fail('it is full'),
    log,
    faults,
    ...more,
  });
  t.teardown(async () => {
    await rewind.close();
    faults.close();
  });
  await rewind.loading;
  return { rewind, faults, written: () => new Promise<void>((done) => rewind.afterWrites(async () => done())) };
}

/** The media playlist of a window that begins with a segment. */
const window = (msn: number): Text => new Text(`#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${msn}\n`);

function listed(rewind: Rewind, before: number): { msn: number; gap: boolean }[] {
  const text = rewind.before(LIST, () => window(before), 'full').plain.toString();
  return [...text.matchAll(/(#EXT-X-GAP\n)?#EXTINF:.*\nseg_0_(\d+)_/g)].map(([, gap, msn]) => ({
    msn: Number(msn),
    gap: gap !== undefined,
  }));
}

const there = (...numbers: number[]) => numbers.map((msn) => ({ msn, gap: false }));

async function mediaOf(rewind: Rewind, name: string): Promise<string | undefined> {
  const media: Media | undefined = rewind.media(name);
  await media?.write?.();
  return media && Buffer.concat([...media.body]).toString();
}

test('segments are listed, are served from memory until they are on the disk, and then from there', async (t) => {
  const folder = await temporary(t);
  const { rewind, written } = await open(t, folder);
  for (const msn of [0, 1, 2]) rewind.segment(segment(msn));
  t.deepEqual(listed(rewind, 3), there(0, 1, 2));
  t.is(await mediaOf(rewind, nameOf(1)), 'media of 1');
  await written();
  const [pack = '', ...more] = await filesOf(folder, 'media');
  t.is(await readFile(join(folder, pack), 'utf8'), 'media of 0media of 1media of 2');
  t.deepEqual([...more, (await readdir(folder)).length], [3]);
  t.is(await mediaOf(rewind, nameOf(2)), 'media of 2');
  t.is(await mediaOf(rewind, INIT), 'init');
  t.is(rewind.media(nameOf(3)), undefined);
  t.is(rewind.media('seg_1_1_video_abcdefgh_llhls.m4s'), undefined);
  t.is(rewind.media('chunklist'), undefined);
});

test('another run of the server finds what is on the disk, and goes on after it', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  for (const msn of [0, 1, 2]) first.rewind.segment(segment(msn));
  await first.rewind.close();
  first.rewind.segment(segment(3));
  const { rewind, written } = await open(t, folder);
  t.deepEqual(listed(rewind, 3), there(0, 1, 2));
  rewind.segment(segment(5, { discontinuity: true, discontinuitySequence: 0 }));
  await written();
  t.deepEqual(listed(rewind, 6), [...there(0, 1, 2), { msn: 3, gap: true }, { msn: 4, gap: true }, ...there(5)]);
  t.is(await mediaOf(rewind, nameOf(0)), 'media of 0');
  t.is(await mediaOf(rewind, INIT), 'init');
});

test('a journal whose last line was cut off, damaged lines, and files that are gone', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0));
  const first = await open(t, folder);
  for (const msn of [1, 2, 3]) first.rewind.segment(segment(msn));
  await first.rewind.close();
  const [, journal = ''] = await filesOf(folder, 'journal');
  const lines = (await readFile(join(folder, journal), 'utf8')).split('\n');
  const foreign = { ...JSON.parse(lines[0] as string), name: '../../etc/passwd' };
  const second = JSON.parse(lines[1] as string) as { place: object };
  const outside = { ...second, place: { ...second.place, pack: '../pack_0_abcdefgh.media' } };
  const beyond = { ...second, place: { ...second.place, bytes: 1000 } };
  await writeFile(
    join(folder, journal),
    [
      ...['{"name":"../x"}', 'no JSON', JSON.stringify(foreign), JSON.stringify(outside), JSON.stringify(beyond)],
      lines[1],
      lines[2]?.slice(0, 40),
    ].join('\n'),
  );
  await lose(folder, 0);
  const { rewind, faults } = await open(t, folder);
  t.deepEqual(listed(rewind, 3), [{ msn: 0, gap: true }, { msn: 1, gap: true }, ...there(2)]);
  t.is(faults.latest, undefined);
  // not behind the line that was cut off
  rewind.segment(segment(3));
  await rewind.close();
  t.deepEqual(listed((await open(t, folder)).rewind, 4).slice(-2), there(2, 3));
});

test('segments older than the limit leave the playlist', async (t) => {
  const { rewind } = await open(t, await temporary(t), { maxSeconds: 6 });
  for (let msn = 0; msn < 10; msn++) rewind.segment(segment(msn));
  t.deepEqual(listed(rewind, 10), there(7, 8, 9));
});

test('a break of the publisher counts as time that has passed', async (t) => {
  const { rewind } = await open(t, await temporary(t), { maxSeconds: 60 });
  for (const msn of [0, 1, 2]) rewind.segment(segment(msn));
  rewind.segment(segment(3, { wallClock: 50_000, discontinuity: true }));
  t.deepEqual(listed(rewind, 4), there(0, 1, 2, 3));
  rewind.segment(segment(4, { wallClock: 62_500 }));
  t.deepEqual(listed(rewind, 5), there(2, 3, 4));
  rewind.segment(segment(5, { wallClock: 900_000, discontinuity: true }));
  t.deepEqual(listed(rewind, 6), there(3, 4, 5));
});

test('of a playlist of type EVENT nothing leaves', async (t) => {
  const { rewind } = await open(t, await temporary(t), { maxSeconds: 6, event: true });
  for (let msn = 0; msn < 10; msn++) rewind.segment(segment(msn));
  t.is(listed(rewind, 10).length, 10);
});

test('a segment that cannot be written is a gap, and those after it are not', async (t) => {
  const folder = await temporary(t);
  const { rewind, written, faults } = await open(t, folder);
  rewind.segment(segment(0, { body: () => Promise.reject(new Error('no media')) }));
  rewind.segment(segment(1));
  await written();
  t.deepEqual(listed(rewind, 2), [{ msn: 0, gap: true }, ...there(1)]);
  t.regex(faults.latest ?? '', /no media/);
});

test('a folder that cannot be made costs the past only', async (t) => {
  const folder = await temporary(t);
  await writeFile(folder, 'a file');
  const { rewind, written, faults } = await open(t, folder);
  rewind.segment(segment(0));
  await written();
  t.deepEqual(listed(rewind, 1), [{ msn: 0, gap: true }]);
  t.regex(faults.latest ?? '', /ENOTDIR|EEXIST/);
});

test('a file that is gone, or became a link, is not served, and is a gap from then on', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0), segment(1), segment(2));
  const { rewind } = await open(t, folder);
  await lose(folder, 0);
  await symlink('/etc/hostname', await lose(folder, 1));
  for (const msn of [0, 1]) await t.throwsAsync(mediaOf(rewind, nameOf(msn)), { code: 'fileNotFound' });
  t.deepEqual(listed(rewind, 3), [{ msn: 0, gap: true }, { msn: 1, gap: true }, ...there(2)]);
  t.is(rewind.media(nameOf(0)), undefined);
});

test('a disk with too little room: older segments leave early', async (t) => {
  const folder = await temporary(t);
  for (const first of [0, 4]) {
    const before = await open(t, folder);
    for (let msn = first; msn < first + 4; msn++) before.rewind.segment(segment(msn));
    await before.rewind.close();
  }
  const { rewind, written } = await open(t, folder, { minFree: Number.MAX_SAFE_INTEGER });
  rewind.segment(segment(8));
  rewind.segment(sound(8));
  await written();
  t.deepEqual(listed(rewind, 9), there(4, 5, 6, 7, 8));
  t.deepEqual(
    (await filesOf(folder, 'media')).map((name) => name.split('_')[1]),
    ['4', '8'],
  );
  for (let msn = 9; msn < 14; msn++) {
    rewind.segment(segment(msn));
    // one of another playlist comes later
    if (msn > 9) rewind.segment(sound(msn - 1));
    await written();
  }
  t.deepEqual(listed(rewind, 14).at(-1), { msn: 13, gap: false });
  t.true(listed(rewind, 14).length <= 3);
  t.true((await filesOf(folder, 'media')).length <= 3);
});

test('a disk with too little room and nothing to remove', async (t) => {
  const { rewind, written, faults } = await open(t, await temporary(t), { minFree: Number.MAX_SAFE_INTEGER });
  rewind.segment(segment(0));
  await written();
  t.deepEqual(listed(rewind, 1), [{ msn: 0, gap: true }]);
  t.regex(faults.latest ?? '', /the disk is full/);
});

test('a disk with too little room ends a playlist of type EVENT', async (t) => {
  const folder = await temporary(t);
  await mkdir(folder);
  let ended = 0;
  const { rewind, written } = await open(t, folder, {
    minFree: Number.MAX_SAFE_INTEGER,
    event: true,
    onFull: () => ended++,
  });
  rewind.segment(segment(0));
  await written();
  rewind.segment(segment(1));
  await written();
  t.is(ended, 1);
});

test('files of others in the folder stay', async (t) => {
  const folder = await temporary(t);
  const { rewind, written } = await open(t, folder);
  rewind.segment(segment(0));
  await written();
  await writeFile(join(folder, 'notes.txt'), 'mine');
  await rewind.close();
  await new RunFiles(folder).removeAll();
  t.deepEqual(await readdir(folder), ['notes.txt']);
});

test('an initialization that no segment needs any more is removed', async (t) => {
  const folder = await temporary(t);
  const { rewind, written } = await open(t, folder, { maxSeconds: 4 });
  rewind.segment(segment(0));
  const init = { name: 'init_0_video_abcdefgh_v1_llhls.m4s', data: Buffer.from('other') };
  for (let msn = 1; msn < 6; msn++) rewind.segment(segment(msn, { init }));
  await written();
  t.is(rewind.media(INIT), undefined);
  t.is(await mediaOf(rewind, init.name), 'other');
  t.false((await readdir(folder)).includes(INIT));
});

test('all segments are read in order, with those that come meanwhile, and lost ones as gaps', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0), segment(1), sound(1), segment(2));
  const packs = (await filesOf(folder, 'media')).filter((name) => name.startsWith('pack_1_'));
  const texts = await Promise.all(
    (await filesOf(folder, 'journal')).map((name) => readFile(join(folder, name), 'utf8')),
  );
  // both have the number of their first segment
  const lost = packs.find((pack) => texts.some((text) => text.includes(pack) && text.includes(nameOf(1)))) ?? '';
  await unlink(join(folder, lost));
  const { rewind } = await open(t, folder);
  const found: string[] = [];
  for await (const { name, msn, gap, init, body } of rewind.segments()) {
    found.push(`${name} ${gap ? 'gap' : Buffer.concat([...(await body())]).toString()} ${init?.data.toString()}`);
    if (msn === 2 && found.length < 6) rewind.segment(segment(3));
  }
  t.deepEqual(found, [
    `${nameOf(0)} media of 0 init`,
    `${nameOf(1)} gap init`,
    'seg_1_1_audio_abcdefgh_llhls.m4s media of 1 init',
    `${nameOf(2)} media of 2 init`,
    'seg_1_2_audio_abcdefgh_llhls.m4s gap init',
    `${nameOf(3)} media of 3 init`,
  ]);
});

const SOUND = 'chunklist_1_audio_abcdefgh_llhls.m3u8';
const sound = (msn: number, more: Partial<FollowedSegment> = {}): FollowedSegment =>
  segment(msn, { list: SOUND, name: `seg_1_${msn}_audio_abcdefgh_llhls.m4s`, ...more });

/** Times of all segments of a media playlist, with their numbers and the number of discontinuities. */
function times(rewind: Rewind, list: string): string[] {
  const { past } = rewind.shelf(list) ?? {};
  if (past === undefined) return [];
  return Array.from({ length: past.next - past.first }, (_, index) => {
    const { msn, wallClock, duration } = past.segment(past.first + index, '');
    return `${msn} at ${wallClock} for ${duration}, ${past.discontinuitiesTo(msn)}`;
  });
}

test('after a death, playlists of which more and less is on the disk list gaps at the times of the segments', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  for (let msn = 0; msn < 6; msn++) {
    const step = msn < 4 ? {} : msn === 4 ? { discontinuity: true } : { discontinuitySequence: 1 };
    first.rewind.segment(segment(msn, { ...step, duration: 2.5 }));
    if (msn < 4) first.rewind.segment(sound(msn, { duration: 2.5 }));
  }
  await first.rewind.close();
  const { rewind } = await open(t, folder);
  t.deepEqual(times(rewind, SOUND), times(rewind, LIST));
  t.deepEqual(times(rewind, SOUND).slice(-3), [
    '3 at 6000 for 2.5, 0',
    '4 at 8000 for 2.5, 1',
    '5 at 10000 for 2.5, 1',
  ]);
  t.is(rewind.media('seg_1_5_audio_abcdefgh_llhls.m4s'), undefined);
  // gaps in front of the next publisher's segments count back from those
  const next = { discontinuitySequence: 1, duration: 2 };
  for (const one of [segment, sound])
    for (let msn = 3; msn < 8; msn++) rewind.segment(one(msn, { ...next, wallClock: 60_000 + msn * 2000, gap: true }));
  for (const one of [segment, sound]) rewind.segment(one(8, { ...next, wallClock: 76_000, discontinuity: true }));
  t.deepEqual(times(rewind, SOUND), times(rewind, LIST));
  t.is(times(rewind, LIST)[6], '6 at 72000 for 2, 1');
});

/** A run of two tracks with two segments each. */
async function twoTracks(t: ExecutionContext, folder: string): Promise<void> {
  const { rewind } = await open(t, folder);
  for (const msn of [0, 1]) for (const one of [segment, sound]) rewind.segment(one(msn));
  await rewind.close();
}

test('a playlist whose track comes later has its gaps at the times of the others', async (t) => {
  const folder = await temporary(t);
  await twoTracks(t, folder);
  const { rewind } = await open(t, folder);
  const after = { wallClock: 90_000, discontinuitySequence: 1 };
  rewind.segment(segment(2, { ...after, wallClock: 86_000, discontinuitySequence: 0, gap: true }));
  rewind.segment(segment(3, { ...after, wallClock: 88_000, discontinuitySequence: 0, discontinuity: true }));
  rewind.segment(segment(4, after));
  rewind.segment(sound(4, after));
  t.deepEqual(times(rewind, SOUND), times(rewind, LIST));
});

test('a gap of an earlier owner gives way to the time at which another playlist has media', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  first.rewind.segment(sound(0));
  first.rewind.segment(sound(1, { gap: true, wallClock: 40_000 }));
  for (const msn of [0, 1]) first.rewind.segment(segment(msn));
  await first.rewind.close();
  t.deepEqual(times((await open(t, folder)).rewind, SOUND), ['0 at 0 for 2, 0', '1 at 2000 for 2, 0']);
});

test('a journal that is a link, and an initialization that is gone, cost their own segments only', async (t) => {
  const folder = await temporary(t);
  const init = { name: 'init_1_audio_abcdefgh_llhls.m4s', data: Buffer.from('sound') };
  const first = await open(t, folder);
  for (const msn of [0, 1]) {
    first.rewind.segment(segment(msn));
    first.rewind.segment(sound(msn, { init }));
  }
  await first.rewind.close();
  const outside = join(folder, '../outside');
  await writeFile(outside, '');
  await symlink(outside, join(folder, 'run_2_abcdefgh.journal'));
  await unlink(join(folder, 'init_1_audio_abcdefgh_llhls.m4s'));
  const { rewind, written, faults } = await open(t, folder);
  t.deepEqual(listed(rewind, 2), there(0, 1));
  t.is(rewind.media('seg_1_0_audio_abcdefgh_llhls.m4s'), undefined);
  t.regex(faults.latest ?? '', /ELOOP/);
  rewind.segment(segment(2));
  await written();
  t.is(await readFile(outside, 'utf8'), '');
});

test('after a line that was cut off a new journal begins', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0));
  const [journal = ''] = await filesOf(folder, 'journal');
  await appendFile(join(folder, journal), '{"name":"seg_0_1');
  const again = new RunFiles(folder);
  await again.load(() => t.fail());
  await again.store([{ segment: segment(2), body: [Buffer.from('media')] }]);
  await again.close();
  const { rewind } = await open(t, folder);
  t.deepEqual(listed(rewind, 3), [...there(0), { msn: 1, gap: true }, ...there(2)]);
});

test('what an earlier version has left is listed, read, and removed: a file for each segment, a journal for each playlist', async (t) => {
  const folder = await temporary(t);
  await mkdir(folder);
  for (const msn of [0, 1]) {
    await writeFile(join(folder, nameOf(msn)), `media of ${msn}`);
    await appendFile(join(folder, `${LIST}.0.journal`), journalLine(segment(msn)));
  }
  await appendFile(join(folder, `${LIST}.0.journal`), journalLine(segment(2)));
  await writeFile(join(folder, INIT), 'init');
  const { rewind, written } = await open(t, folder, { maxSeconds: 20 });
  t.deepEqual(listed(rewind, 3), [...there(0, 1), { msn: 2, gap: true }]);
  t.is(await mediaOf(rewind, nameOf(1)), 'media of 1');
  for (let msn = 3; msn < 1100; msn++) rewind.segment(segment(msn));
  await written();
  rewind.segment(segment(1100));
  await written();
  t.deepEqual(
    (await filesOf(folder, 'journal')).filter((name) => name.includes('.m3u8')),
    [],
  );
  await rewind.close();
  await new RunFiles(folder).removeAll();
  t.deepEqual(await readdir(dirname(folder)), []);
});

test('segments of all playlists of one moment are written by one call, and found by another node', async (t) => {
  const folder = await temporary(t);
  const { rewind, written } = await open(t, folder);
  for (const msn of [0, 1]) {
    rewind.segment(segment(msn));
    rewind.segment(sound(msn));
  }
  await written();
  const another = new RunFiles(folder);
  const { lists, last } = await another.page(undefined, () => t.fail());
  t.deepEqual([...lists.keys()], [LIST, SOUND]);
  t.is(last, undefined);
  t.deepEqual((await another.read(nameOf(1))).toString(), 'media of 1');
  t.deepEqual((await another.read(INIT)).toString(), 'init');
  await t.throwsAsync(another.read(nameOf(2)), { code: 'ENOENT' });
  // a journal that is still written names it now
  rewind.segment(segment(2));
  await written();
  t.deepEqual((await another.read(nameOf(2))).toString(), 'media of 2');
});

test('a segment that no playlist has any more goes with the last one of its pack', async (t) => {
  const folder = await temporary(t);
  const files = new RunFiles(folder);
  for (const msns of [
    [0, 1],
    [2, 3],
  ]) {
    await files.store(msns.map((msn) => ({ segment: segment(msn), body: [Buffer.from(`media of ${msn}`)] })));
    await files.close();
  }
  t.deepEqual(await files.packs.oldest(), { from: 0, to: 2 });
  t.false(await files.remove(nameOf(0)));
  t.is((await filesOf(folder, 'media')).length, 2);
  t.true(await files.remove(nameOf(1)));
  t.is((await filesOf(folder, 'media')).length, 1);
  t.deepEqual(await files.packs.oldest(), { from: 2, to: 4 });
  t.false(await files.remove(nameOf(1)));
  t.is((await files.read(nameOf(3))).toString(), 'media of 3');
  await files.close();
});

test('a pack that was begun before a crash, and that no journal names, goes with those of its time', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0));
  await writeFile(join(folder, 'pack_1_abcdefgh.media'), 'half of one');
  await stored(folder, segment(2));
  const files = new RunFiles(folder);
  await files.load(() => t.fail());
  t.is(await files.packs.removeBefore(1), 1);
  t.deepEqual(await files.packs.oldest(), { from: 1, to: 2 });
  t.is(await files.packs.removeBefore(2), 1);
  t.deepEqual(await files.packs.oldest(), { from: 2, to: 3 });
  t.is((await files.read(nameOf(2))).toString(), 'media of 2');
  t.is((await filesOf(folder, 'media')).length, 1);
});

test('a pack that is cut off costs the segments of its end', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  for (const msn of [0, 1]) first.rewind.segment(segment(msn));
  await first.rewind.close();
  const { rewind } = await open(t, folder);
  t.deepEqual(listed(rewind, 2), there(0, 1));
  const [pack = ''] = await filesOf(folder, 'media');
  await truncate(join(folder, pack), 15);
  await t.throwsAsync(mediaOf(rewind, nameOf(1)), { code: 'fileNotFound' });
  t.is(await mediaOf(rewind, nameOf(0)), 'media of 0');
  t.deepEqual(listed(rewind, 2), [...there(0), { msn: 1, gap: true }]);
  t.deepEqual(listed((await open(t, folder)).rewind, 2), [...there(0), { msn: 1, gap: true }]);
});

test('a pack that others have changed while it was closed is left alone', async (t) => {
  const folder = await temporary(t);
  const files = new RunFiles(folder);
  const store = (msn: number) => files.store([{ segment: segment(msn), body: [Buffer.from(`media of ${msn}`)] }]);
  await store(0);
  const [pack = ''] = await filesOf(folder, 'media');
  await appended.close(join(folder, pack));
  await appendFile(join(folder, pack), 'something');
  await t.throwsAsync(store(1), { message: /changed by others/ });
  await store(2);
  t.is((await files.read(nameOf(0))).toString(), 'media of 0');
  t.is((await files.read(nameOf(2))).toString(), 'media of 2');
  await files.close();
  const found = (await new RunFiles(folder).load(() => t.fail())).get(LIST) ?? [];
  t.deepEqual(
    found.map(({ msn }) => msn),
    [0, 2],
  );
});

test('after the folder was removed, new segments go to a new one, with a journal', async (t) => {
  const folder = await temporary(t);
  const files = new RunFiles(folder);
  const store = (msn: number) => files.store([{ segment: segment(msn), body: [Buffer.from(`media of ${msn}`)] }]);
  await store(0);
  await rm(folder, { recursive: true });
  t.true((await files.free()) > 0);
  await store(1);
  await files.close();
  const lists = await new RunFiles(folder).load(() => t.fail());
  t.deepEqual(
    lists.get(LIST)?.map(({ msn, gap }) => ({ msn, gap })),
    there(1),
  );
});

test('a disk with too little room: segments in files of an earlier version leave a few at a time', async (t) => {
  const folder = await temporary(t);
  await mkdir(folder);
  await writeFile(join(folder, INIT), 'init');
  for (let msn = 0; msn < 8; msn++) {
    await writeFile(join(folder, nameOf(msn)), `media of ${msn}`);
    await appendFile(join(folder, `${LIST}.0.journal`), journalLine(segment(msn)));
  }
  await stored(folder, segment(8), segment(9));
  const { rewind, written } = await open(t, folder, { minFree: Number.MAX_SAFE_INTEGER });
  rewind.segment(segment(10));
  await written();
  t.deepEqual(listed(rewind, 11), there(2, 3, 4, 5, 6, 7, 8, 9, 10));
});

test('a disk with too little room: a pack whose segments were lost leaves, too', async (t) => {
  const folder = await temporary(t);
  await stored(folder, segment(0), segment(1), segment(2));
  const { rewind, written } = await open(t, folder, { minFree: Number.MAX_SAFE_INTEGER });
  rewind.shelf(LIST)?.past.markGap(0);
  rewind.segment(segment(3));
  await written();
  t.deepEqual(listed(rewind, 4), there(1, 2, 3));
  t.deepEqual(
    (await filesOf(folder, 'media')).map((name) => name.split('_')[1]),
    ['1', '2', '3'],
  );
});

test('the past of a track that comes no more leaves after the time, with its journals', async (t) => {
  const folder = await temporary(t);
  await twoTracks(t, folder);
  const { rewind, written } = await open(t, folder, { maxSeconds: 6 });
  for (let msn = 2; msn < 4; msn++) rewind.segment(segment(msn));
  t.deepEqual(times(rewind, SOUND).length, 2);
  for (let msn = 4; msn < 10; msn++) rewind.segment(segment(msn));
  t.deepEqual(times(rewind, SOUND), []);
  t.is(rewind.media(sound(1).name), undefined);
  await written();
  t.deepEqual(
    (await filesOf(folder, 'journal')).map((name) => name.split('_')[1]),
    ['2'],
  );
});

test('a segment is written when all playlists have theirs of that moment, and no later', async (t) => {
  const folder = await temporary(t);
  const stores: string[][] = [];
  const files = new RunFiles(folder);
  files.store = async (segments) => void stores.push(segments.map(({ segment: { name } }) => name));
  const { rewind } = await open(t, folder, { files });
  for (const msn of [0, 1]) {
    rewind.segment(segment(msn));
    rewind.segment(sound(msn));
  }
  while (stores.length < 3) await new Promise((done) => setImmediate(done));
  t.deepEqual(stores, [[nameOf(0)], [sound(0).name], [nameOf(1), sound(1).name]]);
});

test('a journal with far too many holes begins the list anew, again and again', async (t) => {
  const folder = await temporary(t);
  await mkdir(folder);
  const lines = Array.from({ length: 100 }, (_, index) => journalLine(segment(index * 9000)));
  await writeFile(join(folder, `${LIST}.0.journal`), lines.join(''));
  const { rewind } = await open(t, folder);
  t.true(listed(rewind, 100 * 9000).length <= 10_002);
});

test('many who ask for one segment cause one read', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  first.rewind.segment(segment(0));
  await first.rewind.close();
  let reads = 0;
  const files = new RunFiles(folder);
  const read = files.read.bind(files);
  files.read = (name) => {
    if (name === nameOf(0)) reads++;
    return read(name);
  };
  const { rewind } = await open(t, folder, { files });
  const bodies = await Promise.all(Array.from({ length: 50 }, () => mediaOf(rewind, nameOf(0))));
  t.deepEqual(new Set(bodies), new Set(['media of 0']));
  t.is(reads, 1);
});

test('segments of other nodes are listed, read there, and gone with their node', async (t) => {
  const folder = await temporary(t);
  const holder = {
    isThere: () => true,
    read: (name: string) => Promise.resolve(Buffer.from(`elsewhere: ${name}`)),
  };
  const plain = [0, 1, 2].map((msn) => readJournal(journalLine(segment(msn)))).flat();
  const elsewhere = () => Promise.resolve([{ ...holder, holder, lists: new Map([[LIST, plain]]) }]);
  const { rewind, written } = await open(t, folder, { elsewhere });
  t.deepEqual(listed(rewind, 3), there(0, 1, 2));
  t.is(await mediaOf(rewind, nameOf(1)), `elsewhere: ${nameOf(1)}`);
  t.is(await mediaOf(rewind, INIT), `elsewhere: ${INIT}`);
  rewind.segment(segment(3));
  await written();
  t.is(await readFile(join(folder, INIT), 'utf8'), `elsewhere: ${INIT}`);
  t.is(await mediaOf(rewind, nameOf(3)), 'media of 3');
});

const MIB = 1024 * 1024;

/** A disk whose calls count as hanging after more time than a busy disk takes, and calls that do hang. */
function hanging(t: ExecutionContext) {
  stayAwake(t);
  const disk = new Disks(new DiskCalls({ hangsMs: 3000 })).open('/dvr');
  const { promise, resolve } = Promise.withResolvers<never>();
  return { disk, call: () => promise, end: () => resolve(undefined as never) };
}

test('a disk that hangs: what does not fit into memory becomes gaps, and the rest is written when it answers again', async (t) => {
  const folder = await temporary(t);
  const { disk, call, end } = hanging(t);
  const files = new RunFiles(folder);
  const store = files.store.bind(files);
  let stores = 0;
  files.store = async (segments) => {
    stores++;
    await call();
    await store(segments);
  };
  const counts = new PastCounts();
  const { rewind, written } = await open(t, folder, { files, disk, counts, maxSeconds: 1e6 });
  const states: number[] = [];
  for (let msn = 0; msn < 200; msn++) {
    rewind.segment(segment(msn, { bytes: MIB }));
    rewind.afterWrites(async () => void states.push(msn));
  }
  t.deepEqual(listed(rewind, 200), [
    ...there(...Array.from({ length: 65 }, (_, msn) => msn)),
    ...Array.from({ length: 135 }, (_, index) => ({ msn: 65 + index, gap: true })),
  ]);
  t.is(counts.lostSegments, 135);
  t.is(await mediaOf(rewind, nameOf(64)), 'media of 64');
  await until('the disk hangs', () => disk.hangs);
  end();
  await written();
  t.is(counts.storedSegments, 65);
  t.true(stores < 30, `${stores}`);
  // of states that wait the newest is kept
  t.true(states.length < 30, `${states.length}`);
  t.is(states.at(-1), 199);
  t.is(disk.queued, 0);
  t.is(await mediaOf(rewind, nameOf(64)), 'media of 64');
});

test('a disk that hangs at the end of a stream is not waited for, and what waits for it is lost', async (t) => {
  const { disk, call, end } = hanging(t);
  t.teardown(end);
  const files = new RunFiles(await temporary(t));
  files.store = call;
  const counts = new PastCounts();
  const { rewind } = await open(t, files.folder, { files, disk, counts });
  for (let msn = 0; msn < 5; msn++) rewind.segment(segment(msn));
  await rewind.close();
  t.is(counts.lostSegments, 5);
});

test('a disk that hangs at the beginning of a stream has no past, and nothing waits to be read from it', async (t) => {
  const { disk, call, end } = hanging(t);
  t.teardown(end);
  const files = new RunFiles(await temporary(t));
  let reads = 0;
  files.read = () => (reads++, call());
  const first = await open(t, files.folder);
  first.rewind.segment(segment(0));
  await first.rewind.close();
  const { rewind } = await open(t, files.folder, { files, disk });
  // its initialization cannot be read
  t.deepEqual(listed(rewind, 1), [{ msn: 0, gap: true }]);
  files.load = call;
  const another = await open(t, files.folder, { files, disk });
  t.deepEqual([listed(another.rewind, 1), reads], [[], 1]);
  another.rewind.segment(segment(1));
  t.is(await mediaOf(another.rewind, nameOf(1)), 'media of 1');
});

test('a segment on a disk that hangs is answered with 503, so that players ask again', async (t) => {
  const { disk, call, end } = hanging(t);
  const files = new RunFiles(await temporary(t));
  const { rewind, written } = await open(t, files.folder, { files, disk });
  rewind.segment(segment(0));
  await written();
  const read = files.read.bind(files);
  files.read = call;
  const asked = () => mediaOf(rewind, nameOf(0));
  await t.throwsAsync(asked, { message: kilnError('playlistOverdue').message });
  t.true(disk.hangs);
  await t.throwsAsync(asked, { message: kilnError('playlistOverdue').message });
  files.read = read;
  end();
  await until('the disk answers', () => !disk.hangs);
  t.is(await asked(), 'media of 0');
});
