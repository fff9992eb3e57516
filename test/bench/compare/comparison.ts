import { setTimeout as delay } from 'node:timers/promises';
import { proportionalBytes } from '../../support/load/usage.ts';
import type { KilnOptions } from '../../support/server/kiln.ts';
import { until } from '../../support/time/until.ts';
import type { BenchContext } from '../measurement.ts';
import { cpuPercent, withServer, type Rig } from '../server.ts';
import type { Figure } from './figures.ts';

export interface CompareContext extends BenchContext {
  /** Root of the checkout whose server is measured. Everything else is of the working tree. */
  readonly root: string;
}

/** Measures one server, whichever it is. */
export interface Comparison {
  readonly name: string;
  run(context: CompareContext): Promise<Figure[]>;
}

/** Windows of a measurement, in seconds since the work began. */
export const COLD = { state: 'cold', from: 4, to: 12 } as const;
const WARM = { state: 'warm', from: 40, to: 52 } as const;
/** After a start the server still reads and connects. */
const STARTED_MS = 2000;

/** Output streams are those that there are without output profiles: video and AAC as they come, Opus for WebRTC. */
const DEFAULT_OUTPUTS: KilnOptions = { application: '' };

/** Starts the server of a checkout with the load tools of the working tree. */
export function withServerOf<T>(root: string, measure: (rig: Rig) => Promise<T>): Promise<T> {
  return withServer(measure, { ...DEFAULT_OUTPUTS, root });
}

/** @returns CPU of a server that has just started and has nothing to do, in percent of one core */
export async function idleCpu(pid: number): Promise<number> {
  await delay(STARTED_MS);
  return cpuPercent(pid, { times: 1 });
}

/** @returns memory (PSS) of a server and its children, in MiB */
export function memoryOf(pid: number): number {
  return proportionalBytes(pid) / 1024 ** 2;
}

/**
 * Measures the cold and the warm window of some work.
 * @param measure resolves at the end of a window of so many seconds
 * @param begun when the work began, by `performance.now()`
 */
export async function coldAndWarm(
  measure: (state: 'cold' | 'warm', seconds: number) => Promise<Figure[]>,
  begun = performance.now(),
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { state, from, to } of [COLD, WARM]) {
    await delay(Math.max(0, begun + from * 1000 - performance.now()));
    figures.push(...(await measure(state, to - from)));
  }
  return figures;
}

/** @throws Error when the server has disconnected one of the publishers */
export async function stillPublished({ publishers }: Rig, count: number): Promise<void> {
  const { connected } = await publishers.ask('count', undefined);
  if (connected !== count) throw new Error(`${connected} of ${count} publishers are connected`);
}

interface Counts {
  readonly connections: Readonly<Record<string, number>>;
}

/** Ends the WebRTC viewers of a stream. Resolves when the server does not send to them any more, which takes its time limit. */
export async function endWebrtcViewers({ kiln, webrtc }: Rig, stream: string): Promise<void> {
  await webrtc.ask('stop', undefined);
  await until('the server has noticed that WebRTC viewers left', async () => {
    const { body } = await kiln.api<Counts>(`/v1/stats/current/vhosts/default/apps/app/streams/${stream}`);
    return body.response.connections['webrtc'] === 0;
  });
}
