import { until } from '../../time/until.ts';
import { LlhlsPlayer, type LlhlsPlayerOptions } from '../llhls-player.ts';
import { PartPoller } from '../part-poller.ts';
import { serve } from '../program.ts';
import { percentile } from '../statistics.ts';
import { monotonic } from '../stamp.ts';

let players: LlhlsPlayer[] = [];
const pollers: PartPoller[] = [];

const commands = {
  /** Starts players and waits until each has played something. */
  async start({ count, ...options }: LlhlsPlayerOptions & { count: number }): Promise<void> {
    const started = await Promise.all(Array.from({ length: count }, () => LlhlsPlayer.start(options)));
    players.push(...started);
    await until('the first part of every player', () => players.every(({ firstPart }) => firstPart > 0));
  },

  /** Starts one player, and ends it. @returns when it started and had a part, in milliseconds of the stamps' clock */
  async open(options: LlhlsPlayerOptions): Promise<{ started: number; firstPart: number }> {
    const started = monotonic();
    const player = await LlhlsPlayer.start(options);
    await until('the first part', () => player.firstPart > 0);
    player.close();
    return { started, firstPart: player.firstPart };
  },

  /** Forgets the delays so far. */
  reset(_: undefined): void {
    for (const player of players) {
      player.delays = [];
      player.requests = 0;
    }
  },

  /** @param lastFrame the newest frame that is counted */
  report({ lastFrame }: { lastFrame: number }) {
    const delays = players.flatMap((player) => player.delays);
    return {
      p50: percentile(delays, 0.5),
      p99: percentile(delays, 0.99),
      frames: players.map(({ frames }) => frames.counts(lastFrame)),
      requests: players.reduce((sum, { requests }) => sum + requests, 0),
      failures: players.flatMap(({ failures }) => failures),
    };
  },

  stop(_: undefined): void {
    for (const player of players) player.close();
    players = [];
  },

  /** Has the newest part of every rendition of some streams fetched once a second, from when each is there. */
  async poll({ port, masters }: { port: number; masters: readonly string[] }): Promise<void> {
    pollers.push(...(await Promise.all(masters.map((master) => PartPoller.start(port, master)))));
  },

  polled(_: undefined) {
    return {
      renditions: pollers.reduce((sum, { renditions }) => sum + renditions, 0),
      parts: pollers.reduce((sum, { parts }) => sum + parts, 0),
      failures: pollers.flatMap(({ failures }) => failures),
    };
  },
};

export type LlhlsCommands = typeof commands;

serve(commands);
