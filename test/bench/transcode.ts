import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { encodersOf } from '../support/programs/encoders.ts';
import { AAC, BYPASS, OPUS, ladderXml, video } from '../support/media/ladder-config.ts';
import { Program } from '../support/load/program.ts';
import type { AloneCommands } from '../support/load/programs/encode-alone.ts';
import type { RenditionCommands } from '../support/load/programs/watch-renditions.ts';
import { median } from '../support/load/statistics.ts';
import { until } from '../support/time/until.ts';
import { atMost, number, type Measurement } from './measurement.ts';
import { ROUNDS } from './ratio.ts';
import { cpuPercent, withServer, type Rig } from './server.ts';

const FRAMERATE = 30;
/** Frames from key frame to key frame of the clip. */
const GOP = 30;
const RENDITIONS = ['540p', '360p', '180p'];
const OUTPUTS = RENDITIONS.length + 2;
const SETTLE_MS = 3000;
const DELAY_SECONDS = 6;
const CPU = { times: 1, seconds: 6 };
/** Of what ffmpeg takes alone. */
const MOST = 1.1;

const playlist = (name: string) =>
  `<Playlist><Name>${name}</Name><FileName>${name}</FileName><Rendition><Name>${name}</Name><Video>${name}</Video></Rendition></Playlist>`;
const application = ladderXml([BYPASS, video(540, 1500), video(360, 800), video(180, 300), AAC, OPUS], {
  playlists: ['source', ...RENDITIONS].map(playlist).join(''),
});

interface Delay {
  readonly p50: number;
  readonly p99: number;
}

/** The server, and ffmpeg without it. CPU in percent of one core, delays in milliseconds. */
interface Round {
  readonly cpu: number;
  readonly plainCpu: number;
  readonly delay: Delay;
  readonly ownDelay: Delay;
}

/** A ladder of 540p, 360p, 180p, AAC and Opus: what the server adds to the delay and to the CPU time of ffmpeg. */
export const transcode: Measurement = {
  name: 'transcode',
  run: ({ clip }) =>
    withServer(
      async (rig) => {
        const rounds: Round[] = [];
        // what else runs on the machine is in every round the same, more or less: the server and ffmpeg take turns
        while (rounds.length < ROUNDS) rounds.push(await takeTurns(rig, clip));
        const middle = (value: (round: Round) => number) => median(rounds.map(value));
        const own = [middle(({ ownDelay }) => ownDelay.p50), middle(({ ownDelay }) => ownDelay.p99)] as const;
        const plain = middle(({ plainCpu }) => plainCpu);
        return [
          atMost({
            what: 'transcoding: a frame passed on until it comes encoded too p50 / p99',
            unit: 'ms',
            digits: 1,
            values: [middle(({ delay }) => delay.p50), middle(({ delay }) => delay.p99)],
            // the slowest frames tell more of what else the machine does
            budget: [own[0] * MOST],
            reference: `ffmpeg alone ${own.map((value) => number(value, 1)).join(' / ')} ms`,
          }),
          atMost({
            what: 'transcoding: CPU of server and ffmpeg, to 540p, 360p, 180p, AAC, Opus',
            unit: '%',
            digits: 1,
            values: [middle(({ cpu }) => cpu)],
            budget: [plain * MOST],
            reference: `one plain ffmpeg ${number(plain, 1)} %`,
          }),
        ];
      },
      { application },
    ),
};

async function takeTurns({ kiln, publishers }: Rig, clip: string): Promise<Round> {
  const viewers = new Program<RenditionCommands>('watch-renditions.ts');
  const alone = new Program<AloneCommands>('encode-alone.ts');
  try {
    await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
    await kiln.liveStream('live');
    await pause(SETTLE_MS);
    const cpu = await cpuPercent(kiln.pid, CPU);
    const urlOf = (name: string) => kiln.httpUrl(`/app/live/${name}?direction=whep`);
    await viewers.ask('start', { source: urlOf('source'), encoded: RENDITIONS.map(urlOf) });
    await pause(DELAY_SECONDS * 1000);
    const delay = await viewers.ask('report', { framerate: FRAMERATE, gop: GOP });
    const command = commandOf(kiln.pid);
    await publishers.ask('stop', ['live']);
    await until('the encoder has ended', () => encodersOf(kiln.pid).length === 0);
    const plain = await plainCpu(command, clip);
    const ownDelay = await alone.ask('measure', { command, clip, outputs: OUTPUTS, seconds: DELAY_SECONDS });
    return { cpu, plainCpu: plain, delay, ownDelay };
  } finally {
    await Promise.all([viewers.stop(), alone.stop()]);
  }
}

/** The command of the only ffmpeg that a process has started. */
function commandOf(pid: number): string[] {
  const [encoder, ...others] = encodersOf(pid);
  if (encoder === undefined || others.length > 0) throw new Error(`${others.length + 1} ffmpegs`);
  return readFileSync(`/proc/${encoder}/cmdline`, 'latin1').split('\0').slice(0, -1);
}

/** CPU time of an ffmpeg, as anybody would write it, with the same encoders told the same, in percent of one core. */
async function plainCpu([path = '', ...args]: readonly string[], clip: string): Promise<number> {
  const encodes = splitAt(args, '-map')
    .slice(1)
    .map((output) => {
      const [, map = ''] = output;
      const size = /scale=(\d+):(\d+)/.exec(output.join(' '));
      const options = output.slice(
        output.findIndex((one) => /^-(force_key_frames|c:a)$/.test(one)),
        output.indexOf('-strict'),
      );
      return ['-map', map, ...(size === null ? [] : ['-s', `${size[1]}x${size[2]}`]), ...options, '-f', 'null', '-'];
    });
  const input = ['-nostdin', '-v', 'error', '-threads', '2', '-re', '-stream_loop', '-1', '-i', clip];
  const child = spawn(path, [...input, ...encodes.flat()], { stdio: ['ignore', 'ignore', 'inherit'] });
  await pause(SETTLE_MS);
  const cpu = await cpuPercent(child.pid as number, CPU);
  child.kill('SIGKILL');
  await once(child, 'exit');
  return cpu;
}

/** The runs of a list that begin with a value; first what is in front of them. */
function splitAt(list: readonly string[], value: string): string[][] {
  const runs: string[][] = [[]];
  for (const one of list) {
    if (one === value) runs.push([]);
    runs.at(-1)?.push(one);
  }
  return runs;
}
