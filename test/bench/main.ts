import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeClip } from '../support/load/clip.ts';
import { admission } from './admission.ts';
import { api } from './api.ts';
import { cdn } from './cdn.ts';
import { channel } from './channel.ts';
import { cluster } from './cluster.ts';
import { cmcd } from './cmcd.ts';
import { compare } from './compare/main.ts';
import { doors } from './doors.ts';
import { drm } from './drm.ts';
import { dvr } from './dvr.ts';
import { failover } from './failover.ts';
import { files } from './files.ts';
import { growth } from './growth/main.ts';
import { ingest } from './ingest.ts';
import { llhls } from './llhls.ts';
import { metrics } from './metrics.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { opening } from './opening.ts';
import { packets } from './packets.ts';
import { playback } from './playback.ts';
import { record } from './record.ts';
import { pushes } from './pushes.ts';
import { scale } from './scale.ts';
import { start } from './start.ts';
import { subtitles } from './subtitles.ts';
import { transcode } from './transcode.ts';
import { webrtc } from './webrtc.ts';

/** `npm run bench -- [measurement ...]`: the figures that the server is judged by, measured on this machine. */
const ALL: readonly Measurement[] = [
  start,
  packets,
  admission,
  ingest,
  doors,
  webrtc,
  llhls,
  cmcd,
  opening,
  transcode,
  record,
  dvr,
  playback,
  drm,
  subtitles,
  channel,
  api,
  cluster,
  failover,
  files,
  cdn,
  pushes,
  metrics,
  scale,
  growth,
];
const WIDTHS = [78, 30, 44, 28];

const wanted = process.argv.slice(2);
if (wanted[0] === 'compare') {
  try {
    process.exit((await compare(wanted.slice(1))) ? 0 : 1);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(2);
  }
}
const unknown = wanted.filter((name) => !ALL.some((one) => one.name === name));
if (unknown.length > 0) {
  const known = ALL.map(({ name }) => name).join(', ');
  process.stderr.write(`no such measurement: ${unknown.join(', ')}; there are ${known}\n`);
  process.exit(2);
}

const folder = await mkdtemp(join(tmpdir(), 'kiln-bench-'));
let failed = false;
try {
  const clip = join(folder, 'clip.flv');
  await encodeClip(clip, { size: '1280x720', kbit: 2500 });
  print(`${cpus().length} cores of ${cpus()[0]?.model ?? 'unknown'}, load ${number(loadavg()[0] ?? 0, 1)}`);
  print('720p30, 2.5 Mbit/s, H.264 and AAC; CPU in percent of one core');
  row('what', 'measured', 'beside it', 'budget', '');
  for (const measurement of ALL.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    try {
      (await measurement.run({ clip, folder })).forEach(printLine);
    } catch (error) {
      failed = true;
      const { message, cause } = error as Error;
      row(measurement.name, `failed: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`, '', '', '');
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

function printLine({ what, measured, reference = '', budget = '', met }: Line): void {
  row(what, measured, reference, budget, met === undefined ? '' : met ? 'met' : 'MISSED');
}

function row(...cells: string[]): void {
  print(
    cells
      .map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
