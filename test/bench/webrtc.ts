import { setTimeout as delay } from 'node:timers/promises';
import { Program } from '../support/load/program.ts';
import type { UdpRelayCommands } from '../support/load/programs/relay-udp.ts';
import type { FrameCommands } from '../support/load/programs/send-frames.ts';
import { number, type Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';
import { cpuPercent, withServer } from './server.ts';

const VIEWERS = 20;
/** Until what runs often is compiled, as on a server that has been up for a while. */
const WARM_UP_MS = 20_000;
const SETTLE_MS = 8000;
/** The same of a relay that has just begun. */
const RELAY_SETTLE_MS = 1000;
const ONCE = { times: 1 };
/** What the relay is sent: as much as the video of the clip. */
const FRAMES = { framerate: 30, kbit: 2500 };

/** What the server adds between RTMP in and WebRTC out, and what a viewer costs, in turn with a bare relay of as many packets. */
export const webrtc: Measurement = {
  name: 'webrtc',
  run: ({ clip }) =>
    withServer(async ({ kiln, publishers, webrtc: viewers }) => {
      const relay = new Program<UdpRelayCommands>('relay-udp.ts');
      const frames = new Program<FrameCommands>('send-frames.ts');
      try {
        const port = await relay.ask('open', await frames.ask('receive', VIEWERS));
        await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
        await kiln.liveStream('live');
        await delay(WARM_UP_MS);
        const unwatched = await cpuPercent(kiln.pid);
        await viewers.ask('start', { url: kiln.httpUrl('/app/live?direction=whep'), count: VIEWERS });
        await delay(SETTLE_MS);
        const own = { cpu: [] as number[], p50: [] as number[], p99: [] as number[] };
        const relayed = { cpu: [] as number[], p50: [] as number[], p99: [] as number[] };
        let lost = 0;
        for (let round = 0; round < ROUNDS; round++) {
          await viewers.ask('reset', undefined);
          own.cpu.push(((await cpuPercent(kiln.pid, ONCE)) - unwatched) / VIEWERS);
          const report = await viewers.ask('report', { lastFrame: 0 });
          own.p50.push(report.p50);
          own.p99.push(report.p99);
          lost = report.lost;

          await frames.ask('start', { port, ...FRAMES });
          await delay(RELAY_SETTLE_MS);
          await frames.ask('reset', undefined);
          relayed.cpu.push((await cpuPercent(relay.pid, ONCE)) / VIEWERS);
          const bare = await frames.ask('report', undefined);
          await frames.ask('stop', undefined);
          relayed.p50.push(bare.p50);
          relayed.p99.push(bare.p99);
        }
        const added = `WebRTC added delay, ${VIEWERS} viewers`;
        const ofDelay = { unit: 'ms', digits: 1, of: 'bare UDP relay' };
        return [
          costLine({
            what: `${added}, p50`,
            ...ofDelay,
            values: own.p50,
            references: relayed.p50,
            reached: 1.5,
            most: 3,
            note: `${lost} packets lost`,
          }),
          costLine({
            what: `${added}, p99`,
            ...ofDelay,
            values: own.p99,
            references: relayed.p99,
            reached: 2,
            most: 10,
          }),
          costLine({
            what: 'CPU per WebRTC viewer',
            unit: '%',
            digits: 3,
            values: own.cpu,
            references: relayed.cpu,
            of: 'bare UDP relay',
            reached: 1,
            most: 0.2,
            note: `${number(unwatched, 1)} % without viewers`,
          }),
        ];
      } finally {
        await Promise.all([relay.stop(), frames.stop()]);
      }
    }),
};
