import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createLogger, FaultLog } from '../../../../../src/log/log.ts';
import { PastCounts } from '../../../../../src/publishers/hls/answer/counts.ts';
import { MediaCache } from '../../../../../src/publishers/hls/answer/media-cache.ts';
import type { Media } from '../../../../../src/publishers/hls/answer/played-stream.ts';
import type { FollowedSegment } from '../../../../../src/publishers/hls/answer/segment-followers.ts';
import { Text } from '../../../../../src/publishers/hls/answer/text.ts';
import { journalLine, readJournal } from '../../../../../src/publishers/hls/rewind/journal.ts';
import { Rewind, type RewindOptions } from '../../../../../src/publishers/hls/rewind/rewind.ts';
import { RunFiles } from '../../../../../src/publishers/hls/rewind/run-files.ts';

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

async function open(t: ExecutionContext, folder: string, more: Partial<RewindOptions> = {}) {
  const log = createLogger('silent');
  const faults = new FaultLog(log);
  const rewind = new Rewind({
    disk: folder,
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
  t.is(await readFile(join(folder, nameOf(2)), 'utf8'), 'media of 2');
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
  const first = await open(t, folder);
  for (const msn of [0, 1, 2, 3]) first.rewind.segment(segment(msn));
  await first.rewind.close();
  const [journal = ''] = (await readdir(folder)).filter((name) => name.endsWith('.journal'));
  const lines = (await readFile(join(folder, journal), 'utf8')).split('\n');
  const foreign = { ...JSON.parse(lines[1] as string), name: '../../etc/passwd' };
  await writeFile(
    join(folder, journal),
    [lines[0], '{"name":"../x"}', 'no JSON', JSON.stringify(foreign), lines[2], lines[3]?.slice(0, 40)].join('\n'),
  );
  await unlink(join(folder, nameOf(0)));
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
  const { rewind, written } = await open(t, folder);
  for (const msn of [0, 1, 2]) rewind.segment(segment(msn));
  await written();
  await unlink(join(folder, nameOf(0)));
  await unlink(join(folder, nameOf(1)));
  await symlink('/etc/hostname', join(folder, nameOf(1)));
  for (const msn of [0, 1]) await t.throwsAsync(mediaOf(rewind, nameOf(msn)), { code: 'fileNotFound' });
  t.deepEqual(listed(rewind, 3), [{ msn: 0, gap: true }, { msn: 1, gap: true }, ...there(2)]);
  t.is(rewind.media(nameOf(0)), undefined);
});

test('a disk with too little room: older segments leave early', async (t) => {
  const folder = await temporary(t);
  const before = await open(t, folder);
  for (let msn = 0; msn < 6; msn++) before.rewind.segment(segment(msn));
  await before.rewind.close();
  const { rewind, written } = await open(t, folder, { minFree: Number.MAX_SAFE_INTEGER });
  rewind.segment(segment(6));
  await written();
  t.deepEqual(listed(rewind, 7), there(2, 3, 4, 5, 6));
  t.false((await readdir(folder)).includes(nameOf(1)));
  for (const msn of [7, 8, 9, 10]) {
    rewind.segment(segment(msn));
    await written();
  }
  t.deepEqual(listed(rewind, 11), there(10));
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
  const before = await open(t, folder);
  for (const msn of [0, 1, 2]) before.rewind.segment(segment(msn));
  before.rewind.segment(
    segment(1, { list: 'chunklist_1_audio_abcdefgh_llhls.m3u8', name: 'seg_1_1_audio_abcdefgh_llhls.m4s' }),
  );
  await before.rewind.close();
  await unlink(join(folder, nameOf(1)));
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

test('a playlist whose track comes later has its gaps at the times of the others', async (t) => {
  const folder = await temporary(t);
  const first = await open(t, folder);
  for (const msn of [0, 1]) {
    first.rewind.segment(segment(msn));
    first.rewind.segment(sound(msn));
  }
  await first.rewind.close();
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
  await symlink(outside, join(folder, `${LIST}.2.journal`));
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
  const files = new RunFiles(folder);
  for (const name of [INIT, nameOf(0), nameOf(2)]) await files.write(name, [Buffer.from('media')]);
  await files.note(LIST, segment(0));
  await appendFile(join(folder, `${LIST}.0.journal`), '{"name":"seg_0_1');
  const again = new RunFiles(folder);
  await again.load(() => t.fail());
  await again.note(LIST, segment(2));
  const { rewind } = await open(t, folder);
  t.deepEqual(listed(rewind, 3), [...there(0), { msn: 1, gap: true }, ...there(2)]);
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
  files.read = (name, most) => {
    if (name === nameOf(0)) reads++;
    return read(name, most);
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
