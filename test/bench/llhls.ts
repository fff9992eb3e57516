import { setTimeout as delay } from 'node:timers/promises';
import { atMost, number, type Line, type Measurement } from './measurement.ts';
import { cpuPercent, withServer, type Rig } from './server.ts';

const CROWD = 100;
const SETTLE_MS = 3000;

/** How soon the newest frame is at LL-HLS players, and what a player costs. */
export const llhls: Measurement = {
  name: 'llhls',
  run: ({ clip }) =>
    withServer(async (rig) => {
      await rig.publishers.ask('start', { port: rig.kiln.ports.rtmp, clip, streams: ['live'] });
      await rig.kiln.liveStream('live');
      await delay(SETTLE_MS);
      const unwatched = await cpuPercent(rig.kiln.pid, { times: 2 });
      const lines: Line[] = [];
      for (const hints of [true, false]) {
        const one = await watch(rig, 1, hints);
        const crowd = await watch(rig, CROWD, hints);
        const failed = one.failures + crowd.failures;
        lines.push(
          atMost({
            what: `newest frame at an LL-HLS player p50, 1 / ${CROWD} viewers, by ${hints ? 'preload hint' : 'reload'}`,
            unit: 'ms',
            digits: 1,
            values: [one.p50, crowd.p50],
            budget: [25, 45],
            reference: `p99 ${number(one.p99)} / ${number(crowd.p99)} ms${failed > 0 ? `, ${failed} FAILED` : ''}`,
          }),
          atMost({
            what: `CPU per LL-HLS viewer, by ${hints ? 'preload hint' : 'reload'}`,
            unit: '%',
            digits: 3,
            values: [(crowd.cpu - unwatched) / CROWD],
            budget: [0.1],
            reference: `${number(crowd.requests, 1)} requests/s each`,
          }),
        );
      }
      return lines;
    }),
};

async function watch({ kiln, llhls: players }: Rig, count: number, hints: boolean) {
  await players.ask('start', { port: kiln.ports.http, master: '/app/live/llhls.m3u8', hints, count });
  await delay(SETTLE_MS);
  await players.ask('reset', undefined);
  const start = performance.now();
  const cpu = await cpuPercent(kiln.pid, count === 1 ? { times: 2 } : {});
  const seconds = (performance.now() - start) / 1000;
  const { p50, p99, requests, failures } = await players.ask('report', { lastFrame: 0 });
  await players.ask('stop', undefined);
  return { p50, p99, cpu, requests: requests / count / seconds, failures: failures.length };
}
