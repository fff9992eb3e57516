import { randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import type { FileMuxer } from '../../src/containers/file-muxer.ts';
import { Mp4File } from '../../src/containers/fmp4/file.ts';
import { RecordedIndex } from '../../src/recording/finished/recorded-index.ts';
import { TsFile } from '../../src/recording/ts-file.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../support/media/packets.ts';
import { distinct } from '../support/recording/recorded-ts.ts';
import { median } from '../support/load/statistics.ts';
import { cpuSeconds } from '../support/load/usage.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import { missingPrograms } from './files.ts';
import { atMost, number, type Line, type Measurement } from './measurement.ts';
import { startNginx } from './nginx.ts';
import { costLine, ROUNDS } from './ratio.ts';
import { wrkPerCpuSecond } from './wrk.ts';

/** Containers by the extensions of their files. */
const CONTAINERS = { mp4: 'MP4', ts: 'MPEG-TS' } as const;
type Container = keyof typeof CONTAINERS;
const NAMES = Object.keys(CONTAINERS) as Container[];
/** Connections that load clips: of one address, as many are answered at a time. */
const CONNECTIONS = 8;
const CLIP_SECONDS = 10;
const HOUR = 3600;
const MINUTE = 60;
/** Video frames of this size, as `distinct` counts it, are 2.5 Mbit/s. */
const LARGE = 12;
const RESTARTS = 3;
/** Seconds until a clip of an hour begins. */
const MOST_SECONDS = 0.3;
/** Times nginx, which has the kernel send its files. */
const REACHED = { mp4: { clip: 13, segment: 9.5 }, ts: { clip: 57, segment: 55 } } as const;
const BEGIN = Date.UTC(2026, 0, 1);

/** How soon a clip of an hour begins, and what clips and segments of recordings cost, beside nginx with the same bytes as files. */
export const playback: Measurement = {
  name: 'playback',
  run: async ({ folder }) => {
    const missing = missingPrograms();
    if (missing.length > 0)
      return [{ what: 'clips of recordings per second', measured: `skipped: ${missing.join(' and ')} not installed` }];
    const storage = await realpath(await mkdtemp(join(folder, 'playback-')));
    for (const container of NAMES) {
      await record(storage, 'hour', container, HOUR, 1);
      await record(storage, 'minute', container, MINUTE, LARGE);
    }
    const kiln = await Kiln.start({ storage, publishers: '<Playback/>' });
    try {
      return [await begins(kiln, storage), ...(await answers(kiln, folder))];
    } finally {
      await kiln.stop();
    }
  },
};

/** Writes a finished recording of a stream, as the node that runs alone keeps it. */
async function record(storage: string, name: string, container: Container, seconds: number, times: number) {
  const stream = `${name}-${container}`;
  const [video, audio] = [videoTrack(), audioTrack()];
  const tracks = [video, audio];
  const onFault = (fault: string): never => {
    throw new Error(fault);
  };
  const muxer: FileMuxer = container === 'mp4' ? new Mp4File(tracks) : new TsFile(tracks, { onFault });
  const pathBelow = `${stream}.${container}`;
  const filePath = join(storage, pathBelow);
  const file = await open(filePath, 'w');
  try {
    for (let from = 0; from < seconds; from += MINUTE) {
      const span = { from, to: from + MINUTE };
      const packets = distinct(interleaved(videoPackets(video, span), audioPackets(audio, span)), times);
      await file.appendFile(Buffer.concat(packets.flatMap((packet) => muxer.write(packet))));
    }
    const { tail, patches } = muxer.end();
    await file.appendFile(Buffer.concat(tail));
    for (const { at, data } of patches) await file.write(data, 0, data.length, at);
  } finally {
    await file.close();
  }
  const temporary = `tmp_${randomBytes(16).toString('hex')}`;
  const { size } = await stat(filePath);
  const index = new RecordedIndex({ folder: join(storage, 'recorded-kiln'), log: pino({ level: 'silent' }) });
  await index.add({
    ...{ temporary, root: storage, file: pathBelow, info: `${stream}.xml`, transactionId: stream, id: stream },
    ...{ vhost: 'default', app: 'app', stream, source: stream, sequence: 0, createdTime: BEGIN, startTime: BEGIN },
    ...{ recordBytes: size, recordTime: seconds * 1000, lastSequence: true, finishTime: BEGIN + seconds * 1000 },
    ...{ filePath, pathBelow },
  });
}

const queryOf = (from: number, seconds: number): string =>
  `start=${new Date(BEGIN + from * 1000).toISOString()}&duration=${seconds}`;

/** Clips of files that were not played since the start of the server, which has served others. */
async function begins(kiln: Kiln, storage: string): Promise<Line> {
  const clip = (stream: string, seconds: number) =>
    kiln.httpUrl(`/app/${stream}/get?${queryOf(0, seconds)}&format=mp4`);
  await firstByte(clip('hour-ts', HOUR));
  await until('the index is stored', async () => {
    const files = await readdir(join(storage, 'playback-kiln'), { recursive: true }).catch(() => []);
    return files.some((file) => file.endsWith('.index'));
  });
  const longest: Record<Container, number> = { mp4: 0, ts: 0 };
  const used: Record<Container, number[]> = { mp4: [], ts: [] };
  for (let restart = 0; restart < RESTARTS; restart++) {
    await kiln.restart();
    for (const container of NAMES) await firstByte(clip(`minute-${container}`, MINUTE));
    for (const container of NAMES) {
      const before = cpuSeconds(kiln.pid);
      longest[container] = Math.max(longest[container], await firstByte(clip(`hour-${container}`, HOUR)));
      used[container].push(cpuSeconds(kiln.pid) - before);
    }
  }
  const cpu = NAMES.map((name) => number(median(used[name]), 2)).join(' / ');
  return atMost({
    what: `first byte of an hour's clip, of ${NAMES.map((name) => CONTAINERS[name]).join(' / ')}`,
    unit: 's',
    digits: 2,
    values: NAMES.map((name) => longest[name]),
    budget: NAMES.map(() => MOST_SECONDS),
    reference: `CPU of the server ${cpu} s`,
  });
}

/** Seconds until an answer's body begins. */
async function firstByte(url: string): Promise<number> {
  const start = performance.now();
  const leave = new AbortController();
  const answer = await fetch(url, { signal: leave.signal });
  if (answer.status !== 200) throw new Error(`${url}: status ${answer.status}`);
  await answer.body?.getReader().read();
  const seconds = (performance.now() - start) / 1000;
  leave.abort();
  return seconds;
}

/** Clips and segments in turn with nginx. */
async function answers(kiln: Kiln, folder: string): Promise<Line[]> {
  const nginx = await startNginx(folder);
  try {
    const lines: Line[] = [];
    for (const container of NAMES) {
      const clip = kiln.httpUrl(`/app/minute-${container}/get?${queryOf(CLIP_SECONDS, CLIP_SECONDS)}&format=mp4`);
      const segment = await segmentOf(kiln.httpUrl(`/app/minute-${container}/recorded.m3u8?${queryOf(0, MINUTE)}`));
      for (const [kind, what, url] of [
        ['clip', `a clip of ${CLIP_SECONDS} s as MP4`, clip],
        ['segment', 'a segment of HLS', segment],
      ] as const) {
        const body = Buffer.from(await (await fetch(url)).arrayBuffer());
        const [values, references]: [number[], number[]] = [[], []];
        for (let round = 0; round < ROUNDS; round++) {
          // nginx keeps the size of a file that it has opened
          const name = `recorded-${lines.length}-${round}`;
          await writeFile(join(nginx.root, name), body);
          values.push(1000 / (await wrkPerCpuSecond(kiln.pid, url, [], CONNECTIONS)));
          references.push(1000 / (await wrkPerCpuSecond(nginx.pid, `${nginx.url}/${name}`, [], CONNECTIONS)));
        }
        lines.push(
          costLine({
            what: `CPU of ${what} of ${CONTAINERS[container]}, ${number(body.length / 1000)} kB`,
            ...{ unit: 'ms', digits: 1, values, references, of: 'nginx with files' },
            reached: REACHED[container][kind],
          }),
        );
      }
    }
    return lines;
  } finally {
    await nginx.stop();
  }
}

/** URL of a segment in the middle of a clip. */
async function segmentOf(master: string): Promise<string> {
  const [list = ''] = urisOf(await (await fetch(master)).text(), master);
  const uris = urisOf(await (await fetch(list)).text(), list);
  const segments = uris.filter((uri) => !uri.includes('init'));
  const segment = segments[segments.length >> 1];
  if (segment === undefined) throw new Error(`no segment in ${list}`);
  return segment;
}
