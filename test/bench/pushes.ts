import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { FIFTY, openReceivers, type Receiver, type Way } from '../support/load/push-receivers.ts';
import { Program } from '../support/load/program.ts';
import type { UdpRelayCommands } from '../support/load/programs/relay-udp.ts';
import type { FrameCommands } from '../support/load/programs/send-frames.ts';
import { until } from '../support/time/until.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { costLine } from './ratio.ts';
import { cpuPercent, cpuRounds, withServer } from './server.ts';

/** Pushes of one protocol at a time. */
const EACH = 10;
const SETTLE_MS = 4000;
const WARM_UP_MS = 10_000;
const PROBES = 200;
const PROBE_EVERY_MS = 25;
const APP = '/v1/vhosts/default/apps/app';
/** What the relay is sent: as much as the clip. */
const FRAMES = { framerate: 30, kbit: 2600 };
/** Times the relay, which sends as much over UDP. */
const REACHED: Readonly<Record<Way, number>> = {
  RTMP: 0.8,
  'MPEG-TS over TCP': 0.6,
  'MPEG-TS over UDP': 1.2,
  SRT: 4.2,
};

async function start(kiln: Kiln, { protocol, url }: Receiver, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const push = { id, stream: { name: 'live' }, protocol, url, streamKey: id };
    const { status, body } = await kiln.api(`${APP}:startPush`, 'POST', push);
    if (status !== 200) throw new Error(`${url}: ${JSON.stringify(body)}`);
  }
  await until('all are pushing', async () => {
    const { body } = await kiln.api<{ id: string; sentBytes: number }[]>(`${APP}:pushes`);
    return ids.every((id) => body.response.some((push) => push.id === id && push.sentBytes > 0));
  });
}

async function stop(kiln: Kiln, ids: readonly string[]): Promise<void> {
  for (const id of ids) await kiln.api(`${APP}:stopPush`, 'POST', { id });
}

/** The longest of what a request waits that needs nothing but the event loop, but for one in a hundred; milliseconds. */
async function answerMs(kiln: Kiln): Promise<number> {
  const taken: number[] = [];
  for (let n = 0; n < PROBES; n++) {
    const since = performance.now();
    await (await fetch(`http://127.0.0.1:${kiln.ports.api}/livez`)).arrayBuffer();
    taken.push(performance.now() - since);
    await delay(PROBE_EVERY_MS);
  }
  return taken.sort((a, b) => a - b)[Math.floor(PROBES * 0.99)] as number;
}

/** What pushing a stream costs, by protocol, and whether fifty pushes hold up anything else. */
export const pushes: Measurement = {
  name: 'pushes',
  run: ({ clip }) =>
    withServer(
      async ({ kiln, publishers }) => {
        const relay = new Program<UdpRelayCommands>('relay-udp.ts');
        const frames = new Program<FrameCommands>('send-frames.ts');
        const receivers = await openReceivers();
        const ways = Object.entries(receivers) as [Way, Receiver][];
        const idsOf = (way: Way, count: number): string[] => Array.from({ length: count }, (_, n) => `${way} ${n}`);
        try {
          const port = await relay.ask('open', await frames.ask('receive', EACH));
          await frames.ask('start', { port, ...FRAMES });
          const idle = await cpuPercent(kiln.pid, { times: 1 });
          await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
          await kiln.liveStream('live');
          await delay(WARM_UP_MS);
          const alone = await cpuPercent(kiln.pid, { times: 2 });
          const before = await answerMs(kiln);
          const ingest = alone - idle;
          const lines: Line[] = [];
          for (const [way, receiver] of ways) {
            await start(kiln, receiver, idsOf(way, EACH));
            await delay(SETTLE_MS);
            const [all = [], relayed = []] = await cpuRounds([[kiln.pid], [relay.pid]]);
            await stop(kiln, idsOf(way, EACH));
            lines.push(
              costLine({
                what: `push over ${way}, CPU per push, ${EACH} pushes of one stream`,
                unit: '%',
                digits: 2,
                values: all.map((cpu) => (cpu - alone) / EACH),
                references: relayed.map((cpu) => cpu / EACH),
                of: 'bare UDP relay',
                reached: REACHED[way],
                note: `ingest ${number(ingest, 2)} %`,
              }),
            );
          }
          await frames.ask('stop', undefined);
          for (const [way, receiver] of ways) await start(kiln, receiver, idsOf(way, FIFTY[way]));
          await delay(SETTLE_MS);
          const all = (await cpuPercent(kiln.pid, { times: 1 })) - alone;
          lines.push({
            what: 'fifty pushes at once: 99th percentile of what a request waits for an answer',
            measured: `${number(await answerMs(kiln), 1)} ms, CPU ${number(all, 1)} %`,
            reference: `${number(before, 1)} ms without pushes`,
          });
          return lines;
        } finally {
          for (const { close } of Object.values(receivers)) await close();
          await Promise.all([relay.stop(), frames.stop()]);
        }
      },
      { publishers: '<Push/>' },
    ),
};
