import { setTimeout as delay } from 'node:timers/promises';
import { Program } from '../support/load/program.ts';
import type { HeldCommands } from '../support/load/programs/serve-held.ts';
import type { WatchHeldCommands } from '../support/load/programs/watch-held.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { costLine, ROUNDS, type Compared } from './ratio.ts';
import { cpuPercent, cpuRounds, withServer, type Rig } from './server.ts';

const CROWD = 100;
const SETTLE_MS = 2000;
const SECONDS = 4;
/** What the bare server sends: bytes of the clip's chunklists and parts of half a second, of the picture and of the sound. */
const BARE = {
  everyMs: 500,
  renditions: [
    { chunklist: 2400, part: 168_000 },
    { chunklist: 2400, part: 6500 },
  ],
};
/** Times the bare server: of the delay with one viewer and with a crowd, and of the CPU of a viewer. */
const REACHED = {
  hint: { one: 2.2, crowd: 1.2, cpu: 1.8 },
  reload: { one: 2.2, crowd: 1.2, cpu: 1.5 },
} as const;

/** CPU in percent of a core, delays in milliseconds. */
interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly cpu: number;
}

/** A round of the bare server. */
interface Bare extends Round {
  /** CPU of the server that nobody watches meanwhile. */
  readonly unwatched: number;
}

/** How soon the newest frame is at LL-HLS players, and what a player costs, in turn with a bare server of the same answers. */
export const llhls: Measurement = {
  name: 'llhls',
  run: ({ clip }) =>
    withServer(async (rig) => {
      const server = new Program<HeldCommands>('serve-held.ts');
      const watchers = new Program<WatchHeldCommands>('watch-held.ts');
      try {
        const port = await server.ask('open', BARE.everyMs);
        await rig.publishers.ask('start', { port: rig.kiln.ports.rtmp, clip, streams: ['live'] });
        await rig.kiln.liveStream('live');
        await delay(SETTLE_MS);
        const watchBare = async (count: number, hints: boolean): Promise<Bare> => {
          await watchers.ask('start', { port, count, hints, renditions: BARE.renditions });
          await delay(SETTLE_MS);
          await watchers.ask('reset', undefined);
          // nobody watches the server now
          const groups = [[server.pid], [rig.kiln.pid]];
          const [[cpu = 0] = [], [unwatched = 0] = []] = await cpuRounds(groups, { times: 1, seconds: SECONDS });
          const delays = await watchers.ask('report', undefined);
          await watchers.ask('stop', undefined);
          return { ...delays, cpu, unwatched };
        };
        const lines: Line[] = [];
        for (const by of ['hint', 'reload'] as const) {
          const hints = by === 'hint';
          const rounds = { one: newRounds(), crowd: newRounds() };
          for (let round = 0; round < ROUNDS; round++) {
            for (const [size, count] of [
              ['one', 1],
              ['crowd', CROWD],
            ] as const) {
              rounds[size].own.push(await watchLlhls(rig, count, { hints, seconds: SECONDS }));
              rounds[size].bare.push(await watchBare(count, hints));
            }
          }
          const { one, crowd } = rounds;
          const requests = crowd.own.map((round) => round.requests)[0] ?? 0;
          const how = `by ${by === 'hint' ? 'preload hint' : 'reload'}`;
          const ofDelay = { unit: 'ms', digits: 1, of: 'bare node:http' };
          const p99 = ({ own }: Rounds) => number(Math.max(...own.map((round) => round.p99)));
          lines.push(
            costLine({
              what: `newest frame at an LL-HLS player p50, 1 viewer, ${how}`,
              ...ofDelay,
              ...column(one, ({ p50 }) => p50),
              reached: REACHED[by].one,
              most: 25,
              note: `p99 ${p99(one)} ms`,
            }),
            costLine({
              what: `newest frame at an LL-HLS player p50, ${CROWD} viewers, ${how}`,
              ...ofDelay,
              ...column(crowd, ({ p50 }) => p50),
              reached: REACHED[by].crowd,
              most: 45,
              note: `p99 ${p99(crowd)} ms`,
            }),
            costLine({
              what: `CPU per LL-HLS viewer, ${how}`,
              unit: '%',
              digits: 3,
              values: crowd.own.map(({ cpu }, round) => (cpu - (crowd.bare[round]?.unwatched ?? 0)) / CROWD),
              references: crowd.bare.map(({ cpu }) => cpu / CROWD),
              of: 'bare node:http',
              reached: REACHED[by].cpu,
              most: 0.1,
              note: `${number(requests, 1)} requests/s each`,
            }),
          );
        }
        return lines;
      } finally {
        await Promise.all([server.stop(), watchers.stop()]);
      }
    }),
};

interface Rounds {
  readonly own: (Round & { readonly requests: number })[];
  readonly bare: Bare[];
}

function newRounds(): Rounds {
  return { own: [], bare: [] };
}

function column({ own, bare }: Rounds, of: (round: Round) => number): Pick<Compared, 'values' | 'references'> {
  return { values: own.map(of), references: bare.map(of) };
}

/**
 * Has players watch the stream `live` for some seconds, and ends them.
 * @returns the age of the newest frame, in milliseconds, the server's CPU, in percent of a core, and requests per second of each
 * @throws Error when one of them could not play on
 */
export async function watchLlhls(
  { kiln, llhls: players }: Rig,
  count: number,
  { hints, seconds }: { readonly hints: boolean; readonly seconds: number },
): Promise<Round & { requests: number }> {
  await players.ask('start', { port: kiln.ports.http, master: '/app/live/llhls.m3u8', hints, count });
  await delay(SETTLE_MS);
  await players.ask('reset', undefined);
  const start = performance.now();
  const cpu = await cpuPercent(kiln.pid, { times: 1, seconds });
  const passed = (performance.now() - start) / 1000;
  const { p50, p99, requests, failures } = await players.ask('report', { lastFrame: 0 });
  await players.ask('stop', undefined);
  if (failures.length > 0) throw new Error(`${failures.length} players failed: ${failures[0]}`);
  return { p50, p99, cpu, requests: requests / count / passed };
}
