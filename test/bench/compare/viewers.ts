import { setTimeout as delay } from 'node:timers/promises';
import { cpuPercent, type Rig } from '../server.ts';
import {
  COLD,
  coldAndWarm,
  endWebrtcViewers,
  memoryOf,
  stillPublished,
  withServerOf,
  type Comparison,
} from './comparison.ts';
import { figure, type Figure } from './figures.ts';

/** Viewers of one stream, by one protocol. */
interface Audience {
  readonly kind: string;
  /** What their delay tells of. */
  readonly delay: string;
  readonly crowd: number;
  /** Resolves when each of so many more has played something. */
  join(rig: Rig, count: number): Promise<void>;
  /** Resolves when they cost the server nothing any more. */
  leave(rig: Rig): Promise<void>;
  /** Forgets the delays so far. */
  reset(rig: Rig): Promise<void>;
  /** @throws Error when one of them is not playing any more */
  delays(rig: Rig): Promise<{ p50: number; p99: number }>;
}

const STREAM = 'live';
const AT_ONCE = 10;
/** Seconds of one viewer after the crowd, on a server that has been at work for long. */
const WARM_ONE = { settle: 8, seconds: 12 };

const webrtc: Audience = {
  kind: 'WebRTC',
  delay: 'WebRTC delay',
  crowd: 50,
  join: ({ kiln, webrtc: viewers }, count) =>
    viewers.ask('start', {
      url: kiln.httpUrl(`/app/${STREAM}?direction=whep`),
      count,
      audio: true,
      atOnce: Math.min(AT_ONCE, count),
    }),
  leave: (rig) => endWebrtcViewers(rig, STREAM),
  reset: ({ webrtc: viewers }) => viewers.ask('reset', undefined),
  delays: async ({ webrtc: viewers }) => {
    const { p50, p99, failed } = await viewers.ask('report', { lastFrame: 0 });
    if (failed > 0) throw new Error(`${failed} WebRTC viewers lost their connection`);
    return { p50, p99 };
  },
};

const llhls: Audience = {
  kind: 'LL-HLS',
  delay: 'newest frame at an LL-HLS player',
  crowd: 100,
  join: ({ kiln, llhls: players }, count) =>
    players.ask('start', { port: kiln.ports.http, master: `/app/${STREAM}/llhls.m3u8`, hints: false, count }),
  leave: ({ llhls: players }) => players.ask('stop', undefined),
  reset: ({ llhls: players }) => players.ask('reset', undefined),
  delays: async ({ llhls: players }) => {
    const { p50, p99, failures } = await players.ask('report', { lastFrame: 0 });
    if (failures.length > 0) throw new Error(failures[0]);
    return { p50, p99 };
  },
};

export const webrtcViewers = crowdOf('webrtc-viewers', webrtc);
export const webrtcOne = oneOf('webrtc-one', webrtc);
export const llhlsViewers = crowdOf('llhls-viewers', llhls);
export const llhlsOne = oneOf('llhls-one', llhls);

/** What each viewer between the first one and the last of a crowd costs, and how late frames are with all of them. */
function crowdOf(name: string, audience: Audience): Comparison {
  const { kind, crowd } = audience;
  return {
    name,
    run: ({ clip, root }) =>
      withServerOf(root, async (rig) => {
        await publish(rig, clip);
        const perViewer = (state: string, few: number, many: number) =>
          figure(`CPU per ${kind} viewer, 1 to ${crowd}, ${state}`, '%', 3, (many - few) / (crowd - 1));
        const { pid } = rig.kiln;

        await audience.join(rig, 1);
        const coldOne = await cpuOfOne(pid, COLD.from, COLD.to - COLD.from);
        await audience.join(rig, crowd - 1);
        const busy: Record<string, number> = {};
        const delays = await coldAndWarm(async (state, seconds) => {
          await audience.reset(rig);
          busy[state] = await cpuPercent(pid, { times: 1, seconds });
          const { p50, p99 } = await audience.delays(rig);
          const what = `${audience.delay}, ${crowd} viewers, ${state}`;
          return [figure(`${what}, p50`, 'ms', 1, p50), figure(`${what}, p99`, 'ms', 1, p99)];
        });
        const memory = memoryOf(pid);
        await audience.leave(rig);

        await audience.join(rig, 1);
        const warmOne = await cpuOfOne(pid, WARM_ONE.settle, WARM_ONE.seconds);
        await stillPublished(rig, 1);
        const { cold = Number.NaN, warm = Number.NaN } = busy;
        return [
          perViewer('cold', coldOne, cold),
          perViewer('warm', warmOne, warm),
          ...delays,
          figure(`PSS with ${crowd} ${kind} viewers`, 'MiB', 1, memory),
        ];
      }),
  };
}

/** What one stream with one viewer costs: the server at rest and the audio encoder, where there is one, included. */
function oneOf(name: string, audience: Audience): Comparison {
  return {
    name,
    run: ({ clip, root }) =>
      withServerOf(root, async (rig) => {
        await publish(rig, clip);
        await audience.join(rig, 1);
        const figures = await coldAndWarm(async (state, seconds): Promise<Figure[]> => {
          const cpu = await cpuPercent(rig.kiln.pid, { times: 1, seconds });
          return [figure(`CPU of one stream and one ${audience.kind} viewer, ${state}`, '%', 2, cpu)];
        });
        await audience.delays(rig);
        await stillPublished(rig, 1);
        return figures;
      }),
  };
}

async function publish({ kiln, publishers }: Rig, clip: string): Promise<void> {
  await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: [STREAM] });
  await kiln.liveStream(STREAM);
}

async function cpuOfOne(pid: number, settle: number, seconds: number): Promise<number> {
  await delay(settle * 1000);
  return cpuPercent(pid, { times: 1, seconds });
}
