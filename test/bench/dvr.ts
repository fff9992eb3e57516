import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Text } from '../../src/publishers/hls/answer/text.ts';
import { PastList } from '../../src/publishers/hls/rewind/past-list.ts';
import { withPast } from '../../src/publishers/hls/rewind/with-past.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { median } from '../support/load/statistics.ts';
import { until } from '../support/time/until.ts';
import { watchLlhls } from './llhls.ts';
import { besideAnother, SETTLE_MS } from './beside.ts';
import { atMost, type BenchContext, type Line, type Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';
import { cpuPercent, LLHLS, withServer, type Rig } from './server.ts';

const STREAMS = 10;
const CROWD = 100;
const SECONDS = 4;
const SEGMENT_SECONDS = 2;
/** Segments of six hours. */
const LONG = 10_800;
const WINDOW = 10;
/** Renditions whose memory is measured at once: one would drown in what the collector leaves. */
const LISTS = 10;
const DVR_CPU = 1.1;
/** Once, but for what rounds differ by. */
const REWINDING_CPU = 1.1;

/** What it costs that viewers can rewind, and what those cost who do. */
export const dvr: Measurement = {
  name: 'dvr',
  run: async (context) => [...(await playlists()), await streams(context), await viewers(context)],
};

async function withDvr(folder: string): Promise<string> {
  const path = await mkdtemp(join(folder, 'dvr-'));
  return `${LLHLS}<DVR><Enable>true</Enable><TempStoragePath>${path}</TempStoragePath></DVR>`;
}

/** Two servers, of which one keeps the streams. */
async function streams(context: BenchContext): Promise<Line> {
  const { values, references } = await besideAnother(context, STREAMS, await withDvr(context.folder));
  const line = costLine({
    what: `CPU of ${STREAMS} streams in which viewers can rewind`,
    ...{ unit: '%', digits: 1, values, references, of: 'the same without DVR' },
  });
  const ratio = median(values.map((value, round) => value / (references[round] ?? 0)));
  return { ...line, budget: `<= ${DVR_CPU} times`, met: ratio <= DVR_CPU };
}

async function viewers({ clip, folder }: BenchContext): Promise<Line> {
  return await withServer(
    async (rig) => {
      await rig.publishers.ask('start', { port: rig.kiln.ports.rtmp, clip, streams: ['live'] });
      await rig.kiln.liveStream('live');
      await delay(SETTLE_MS);
      const [rewinding, live]: [number[], number[]] = [[], []];
      for (let round = 0; round < ROUNDS; round++) {
        live.push((await watchLlhls(rig, CROWD, { hints: true, seconds: SECONDS })).cpu);
        rewinding.push(await rewind(rig));
      }
      const line = costLine({
        what: `CPU of ${CROWD} viewers who rewind`,
        ...{ unit: '%', digits: 1, values: rewinding, references: live, of: 'as many who play live' },
      });
      const ratio = median(rewinding.map((value, round) => value / (live[round] ?? 0)));
      return { ...line, budget: `<= ${REWINDING_CPU} times`, met: ratio <= REWINDING_CPU };
    },
    { llhls: await withDvr(folder) },
  );
}

/** CPU of players who each get a delta update and a segment of video and of audio for each segment's time. */
async function rewind({ kiln }: Rig): Promise<number> {
  const master = kiln.httpUrl('/app/live/llhls.m3u8');
  const lists = urisOf(await (await fetch(master)).text(), master);
  const segments = await Promise.all(
    lists.map((list) =>
      until('a past', async () => {
        const uris = urisOf(await (await fetch(list)).text(), list).filter((uri) => uri.includes('/seg_'));
        return uris.length > 2 && uris;
      }),
    ),
  );
  const state = { isOver: false };
  const play = async (viewer: number): Promise<void> => {
    await delay((viewer / CROWD) * SEGMENT_SECONDS * 1000);
    for (let step = 0; !state.isOver; step++) {
      const next = delay(SEGMENT_SECONDS * 1000);
      for (const [index, list] of lists.entries()) {
        const past = segments[index] ?? [];
        for (const url of [`${list}?_HLS_skip=YES`, past[(viewer + step) % past.length] ?? list])
          await (await fetch(url)).arrayBuffer();
      }
      await next;
    }
  };
  const playing = Promise.all(Array.from({ length: CROWD }, (_, viewer) => play(viewer)));
  await delay(SEGMENT_SECONDS * 1000);
  const cpu = await cpuPercent(kiln.pid, { times: 1, seconds: SECONDS });
  state.isOver = true;
  await playing;
  return cpu;
}

/** Playlists of six hours, in this process. */
async function playlists(): Promise<Line[]> {
  const before = await memory();
  const lists = Array.from({ length: LISTS }, () => new PastList(''));
  for (const list of lists) for (let msn = 0; msn < LONG; msn++) list.add(segment(msn));
  const bytes = ((await memory()) - before) / (LISTS * LONG);
  const [past] = lists as [PastList];
  const [loop, sizes]: [number[], number[]] = [[], []];
  for (let msn = LONG; msn < LONG + 5 * ROUNDS; msn++) {
    const present = presentOf(msn + 1);
    const start = performance.now();
    past.add(segment(msn));
    past.dropBefore(past.first + 1);
    const text = (form: 'full' | 'delta'): Text =>
      new Text(withPast(present, past, { form, event: false, longest: SEGMENT_SECONDS }) ?? '');
    const full = text('full').gzipped();
    const delta = text('delta').gzipped();
    loop.push(performance.now() - start);
    await full;
    sizes.push((await delta).length);
  }
  return [
    atMost({ what: 'memory of a segment that is kept', unit: 'bytes', digits: 0, values: [bytes], budget: [200] }),
    atMost({
      what: 'event loop for one more segment in a playlist of six hours, p50',
      ...{ unit: 'ms', digits: 2, values: [median(loop)], budget: [1] },
    }),
    atMost({
      what: 'its delta update, gzipped',
      ...{ unit: 'bytes', digits: 0, values: [Math.max(...sizes)], budget: [4096] },
    }),
  ];
}

const nameOf = (msn: number): string => `seg_0_${msn}_video_abcdefgh_llhls.m4s`;
const INIT = 'init_0_video_abcdefgh_llhls.m4s';
const dateOf = (msn: number): number => Date.UTC(2026, 0) + msn * SEGMENT_SECONDS * 1000;

function segment(msn: number) {
  const facts = { discontinuity: false, discontinuitySequence: 0, gap: false, breaks: '', init: { name: INIT } };
  return { name: nameOf(msn), msn, duration: SEGMENT_SECONDS, wallClock: dateOf(msn), ...facts };
}

/** The live edge, up to a segment. */
function presentOf(next: number): string {
  let text =
    `#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:${SEGMENT_SECONDS}\n` +
    '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-PART-INF:PART-TARGET=0.5\n' +
    `#EXT-X-MEDIA-SEQUENCE:${next - WINDOW}\n#EXT-X-MAP:URI="${INIT}"\n`;
  for (let msn = next - WINDOW; msn < next; msn++) {
    text += `#EXT-X-PROGRAM-DATE-TIME:${new Date(dateOf(msn)).toISOString()}\n`;
    if (msn > next - 3)
      for (let part = 0; part < 4; part++)
        text += `#EXT-X-PART:DURATION=0.500001,URI="part_0_${msn}_${part}_video_abcdefgh_llhls.m4s"\n`;
    text += `#EXTINF:${SEGMENT_SECONDS.toFixed(6)},\n${nameOf(msn)}\n`;
  }
  return text;
}

/** Bytes of heap and buffers that are in use. */
async function memory(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  // buffers are freed behind it
  await delay(500);
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
