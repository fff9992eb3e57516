import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Disks } from '../../../../../src/core/disks.ts';
import { createLogger, FaultLog } from '../../../../../src/log/log.ts';
import { PastCounts } from '../../../../../src/publishers/hls/answer/counts.ts';
import { MediaCache } from '../../../../../src/publishers/hls/answer/media-cache.ts';
import { Text } from '../../../../../src/publishers/hls/answer/text.ts';
import type { Elsewhere } from '../../../../../src/publishers/hls/rewind/elsewhere.ts';
import type { PastSegment } from '../../../../../src/publishers/hls/rewind/journal.ts';
import { LateNodes } from '../../../../../src/publishers/hls/rewind/late-nodes.ts';
import { Rewind } from '../../../../../src/publishers/hls/rewind/rewind.ts';
import { RunFiles } from '../../../../../src/publishers/hls/rewind/run-files.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const LIST = 'chunklist_0_video_abcdefgh_llhls.m3u8';
const INIT = 'init_0_video_abcdefgh_llhls.m4s';
const OTHER = 'init_0_video_abcdefgh_v1_llhls.m4s';
const LOST = 'init_0_video_abcdefgh_v2_llhls.m4s';
const nameOf = (msn: number): string => `seg_0_${msn}_video_abcdefgh_llhls.m4s`;

function segment(msn: number, init = INIT): PastSegment {
  const facts = { discontinuity: false, discontinuitySequence: 0, gap: false, breaks: '', init: { name: init } };
  return { name: nameOf(msn), msn, duration: 2, wallClock: msn * 2000, ...facts };
}

const holder = {
  isThere: () => true,
  read: (name: string) =>
    name === LOST
      ? Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
      : Promise.resolve(Buffer.from(`elsewhere: ${name}`)),
};
const SILENT = { ...holder, holder, lists: new Map<string, PastSegment[]>() };

/** A node that does not answer so many times. */
function late(times: number, lists: Elsewhere['lists'], onAsked: () => void = () => {}): Elsewhere {
  return {
    ...SILENT,
    more: () => {
      onAsked();
      return Promise.resolve(times > 1 ? late(times - 1, lists, onAsked) : { ...SILENT, lists });
    },
  };
}

/** The past of a run of which this node has some segments. */
async function open(t: ExecutionContext, own: readonly number[], elsewhere: Elsewhere): Promise<Rewind> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-late-'));
  const files = new RunFiles(folder);
  await files.write(INIT, [Buffer.from('init')]);
  await files.store(
    own.map((msn) => ({ segment: { ...segment(msn), list: LIST }, body: [Buffer.from(`media of ${msn}`)] })),
  );
  await files.close();
  const log = createLogger('silent');
  const faults = new FaultLog(log);
  const rewind = new Rewind({
    ...{
      disk: new Disks().open(folder),
      files: new RunFiles(folder),
      maxSeconds: 3600,
      event: false,
      minFree: 0,
      query: '',
      log,
      faults,
    },
    ...{ cache: new MediaCache(1e6), counts: new PastCounts(), onFull: () => t.fail('it is full') },
    elsewhere: () => Promise.resolve([elsewhere]),
  });
  t.teardown(async () => {
    await rewind.close();
    faults.close();
    await rm(folder, { recursive: true, force: true });
  });
  await rewind.loading;
  return rewind;
}

/** Numbers that a playlist lists as gaps. */
function gaps(rewind: Rewind): number[] {
  const present = new Text('#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:9\n');
  const text = rewind.before(LIST, () => present, 'full').plain.toString();
  return [...text.matchAll(/#EXT-X-GAP\n#EXTINF:.*\nseg_0_(\d+)_/g)].map(([, msn]) => Number(msn));
}

async function mediaOf(rewind: Rewind, name: string): Promise<string | undefined> {
  const media = rewind.media(name);
  await media?.write?.();
  return media && Buffer.concat([...media.body]).toString();
}

test.serial('a node that answers late fills gaps, as far as it has their initialization', async (t) => {
  virtualTime(t);
  const theirs = [1, 2, 3, 4, 5, 6, 9].map((msn) => segment(msn, msn === 3 ? OTHER : msn === 4 ? LOST : INIT));
  const rewind = await open(t, [0, 1, 8], late(3, new Map([[LIST, theirs]])));
  t.deepEqual(gaps(rewind), [2, 3, 4, 5, 6, 7]);
  await until('the gaps are filled', () => gaps(rewind).length === 2);
  t.deepEqual(gaps(rewind), [4, 7]);
  t.is(await mediaOf(rewind, nameOf(5)), `elsewhere: ${nameOf(5)}`);
  t.is(await mediaOf(rewind, nameOf(1)), 'media of 1');
  t.is(await mediaOf(rewind, OTHER), `elsewhere: ${OTHER}`);
  t.is(rewind.media(nameOf(4)), undefined);
});

test.serial('gaps of other playlists come to be at the times of segments that a late node has', async (t) => {
  virtualTime(t);
  const list = 'chunklist_1_audio_abcdefgh_llhls.m3u8';
  const sound = (msn: number): PastSegment => ({ ...segment(msn), name: `seg_1_${msn}_audio_abcdefgh_llhls.m4s` });
  const there = { ...SILENT, lists: new Map([[list, [0, 8].map(sound)]]) };
  // longer than the time that there seems to be for it
  const theirs = [1, 2, 3].map((msn) => ({ ...segment(msn), wallClock: 1000 + msn * 4000, duration: 4 }));
  const rewind = await open(t, [0, 8], {
    ...there,
    more: () => Promise.resolve({ ...SILENT, lists: new Map([[LIST, theirs]]) }),
  });
  const { past } = rewind.shelf(list) ?? {};
  const times = () => [1, 2, 3].map((msn) => past?.segment(msn, '').wallClock);
  t.notDeepEqual(times(), [5000, 9000, 13_000]);
  await until('the gaps are filled', () => gaps(rewind).length === 4);
  t.deepEqual(times(), [5000, 9000, 13_000]);
  t.deepEqual(
    [0, 1, 2, 3, 8].map((msn) => past?.has(msn)),
    [true, false, false, false, true],
  );
});

test.serial('a node that never answers is asked some times, with growing pauses', async (t) => {
  virtualTime(t);
  const times: number[] = [];
  const nodes = new LateNodes([late(Infinity, new Map(), () => times.push(performance.now()))], async () => t.fail());
  t.teardown(() => nodes.close());
  const start = performance.now();
  await until('it is given up', () => performance.now() - start > 3_600_000, Infinity);
  t.is(times.length, 10);
  const pauses = times.map((time, index) => Math.round((time - (times[index - 1] ?? start)) / 1000));
  t.deepEqual(pauses, [5, 10, 20, 40, 60, 60, 60, 60, 60, 60]);
});

test.serial('nobody is asked any more after the end', async (t) => {
  virtualTime(t);
  let asked = 0;
  const nodes = new LateNodes([late(Infinity, new Map(), () => asked++)], async () => t.fail());
  await until('it is asked', () => asked === 2);
  nodes.close();
  const end = performance.now();
  await until('a long time has passed', () => performance.now() - end > 600_000, Infinity);
  t.is(asked, 2);
});
