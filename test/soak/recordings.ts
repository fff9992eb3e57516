import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Kiln } from '../support/server/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import { Program } from '../support/load/program.ts';
import { FIFTY, openReceivers, type Receiver, type Way } from '../support/load/push-receivers.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import { percentile } from '../support/load/statistics.ts';
import { cpuSeconds, openFiles, residentBytes } from '../support/load/usage.ts';
import { until } from '../support/time/until.ts';
import { hasIndex, recordedFrames } from './recorded-files.ts';

const APP = '/v1/vhosts/default/apps/app';
const STREAMS = 20;
const EACH = 10;
const COUNT = STREAMS * EACH;
const KBIT = 1000;
const INTERVAL_MS = 10_000;
const RUN_MS = 60_000;
const PROBE_MS = 50;
/** What one that is being written, one that is being completed, and its journal take. */
const MAX_FILES_EACH = 3;
const MIB = 1024 * 1024;

/**
 * Two hundred recordings, all of which end their files at about the same time, beside fifty pushes, for a minute.
 * @returns whether all frames are in the files, and all pushes went on
 */
export async function recordings(folder: string, print: (text: string) => void): Promise<boolean> {
  const clip = join(folder, 'clip.flv');
  const root = join(folder, 'records');
  await encodeClip(clip, { size: '640x360', kbit: KBIT });
  const kiln = await Kiln.start({
    publishers: `<FILE><RootPath>${root}</RootPath></FILE><Push/>`,
    storage: join(folder, 'api'),
  });
  const publishers = new Program<PublishCommands>('publish.ts');
  const receivers = await openReceivers();
  try {
    const streams = Array.from({ length: STREAMS }, (_, n) => `s${n}`);
    await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams });
    await kiln.liveStream(streams.at(-1) as string);
    const pushes = await startPushes(kiln, receivers, streams);
    const before = openFiles(kiln.pid);
    const ids = streams.flatMap((stream) =>
      Array.from({ length: EACH }, (_, n) => [stream, `${stream}-${n}`] as const),
    );
    for (const [stream, id] of ids) {
      const paths = { filePath: '${Id}/${Sequence}.mp4', infoPath: `${id}/info.xml` };
      const body = { id, stream: { name: stream }, interval: INTERVAL_MS, ...paths };
      const { status } = await kiln.api(`${APP}:startRecord`, 'POST', body);
      if (status !== 200) throw new Error(`the recording was answered ${status}`);
    }
    const cpu = cpuSeconds(kiln.pid);
    const begun = performance.now();
    const answers: number[] = [];
    let most = 0;
    while (performance.now() - begun < RUN_MS) {
      const asked = performance.now();
      await (await fetch(`http://127.0.0.1:${kiln.ports.api}/livez`)).text();
      answers.push(performance.now() - asked);
      if (answers.length % 10 === 0) most = Math.max(most, openFiles(kiln.pid));
      await delay(PROBE_MS);
    }
    const cores = (cpuSeconds(kiln.pid) - cpu) / ((performance.now() - begun) / 1000);
    const states = await kiln.api<{ state: string }[]>(`${APP}:records`, 'POST', {});
    const recording = states.body.response.filter(({ state }) => state === 'recording').length;
    const pushed = await kiln.api<{ state: string; sequence: number }[]>(`${APP}:pushes`, 'POST', {});
    const pushing = pushed.body.response.filter(({ state, sequence }) => state === 'pushing' && sequence === 1).length;
    for (const [, id] of ids) await kiln.api(`${APP}:stopRecord`, 'POST', { id });
    await until('all files are closed', () => openFiles(kiln.pid) <= before + STREAMS);
    const faults: string[] = [];
    let files = 0;
    for (const [, id] of ids) {
      const recorded = await recordedFrames(join(root, id), faults, id.endsWith('-0') ? 1 : 0);
      files += recorded.length;
      for (const [index, { path, first }] of recorded.entries()) {
        const last = recorded[index - 1]?.last;
        if (last !== undefined && last + 1 !== first) faults.push(`${path} begins with frame ${first} after ${last}`);
        if (!hasIndex(path)) faults.push(`${path} has no index`);
      }
    }
    const sorted = answers.sort((one, other) => one - other);
    const [p50, p99] = [0.5, 0.99].map((share) => percentile(sorted, share).toFixed(1));
    print(`${recording} of ${COUNT} recordings at the end, ${files} files, ${faults.length} faults`);
    print(`${pushing} of ${pushes} pushes on their first connection at the end`);
    for (const fault of faults.slice(0, 10)) print(`        ${fault}`);
    print(
      `server: ${cores.toFixed(2)} cores, ${(residentBytes(kiln.pid) / MIB).toFixed(0)} MiB, at the most ${most - before} more files open`,
    );
    print(`answers: p50 ${p50} ms, p99 ${p99} ms, slowest ${(sorted.at(-1) ?? 0).toFixed(1)} ms`);
    return recording === COUNT && pushing === pushes && faults.length === 0 && most - before <= MAX_FILES_EACH * COUNT;
  } finally {
    await publishers.stop();
    await kiln.stop();
    for (const { close } of Object.values(receivers)) await close();
  }
}

/** @returns how many */
async function startPushes(
  kiln: Kiln,
  receivers: Readonly<Record<Way, Receiver>>,
  streams: readonly string[],
): Promise<number> {
  let count = 0;
  for (const [way, { protocol, url }] of Object.entries(receivers) as [Way, Receiver][]) {
    for (let n = 0; n < FIFTY[way]; n++) {
      const id = `${way} ${n}`;
      const body = { id, stream: { name: streams[count++ % streams.length] }, protocol, url, streamKey: id };
      const { status } = await kiln.api(`${APP}:startPush`, 'POST', body);
      if (status !== 200) throw new Error(`the push was answered ${status}`);
    }
  }
  await until('all are pushing', async () => {
    const { body } = await kiln.api<{ sentBytes: number }[]>(`${APP}:pushes`, 'POST', {});
    return body.response.length === count && body.response.every(({ sentBytes }) => sentBytes > 0);
  });
  return count;
}
