import { setTimeout as delay } from 'node:timers/promises';
import { Program } from '../support/load/program.ts';
import type { TcpRelayCommands } from '../support/load/programs/relay-tcp.ts';
import { number, type Measurement } from './measurement.ts';
import { costLine } from './ratio.ts';
import { cpuPercent, cpuRounds, withServer } from './server.ts';

const STREAMS = 10;
/** Until what runs often is compiled, as on a server that has been up for a while. */
const SETTLE_MS = 12_000;

/** Taking streams in over RTMP and packaging them for LL-HLS, with nobody watching; they come through a bare relay. */
export const ingest: Measurement = {
  name: 'ingest',
  run: ({ clip }) =>
    withServer(async ({ kiln, publishers }) => {
      const relay = new Program<TcpRelayCommands>('relay-tcp.ts');
      try {
        const port = await relay.ask('open', kiln.ports.rtmp);
        const idle = await cpuPercent(kiln.pid, { times: 1 });
        const streams = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
        await publishers.ask('start', { port, clip, streams });
        await delay(SETTLE_MS);
        const [busy = [], relayed = []] = await cpuRounds([[kiln.pid], [relay.pid]]);
        return [
          costLine({
            what: `ingest and packaging CPU per stream, ${STREAMS} streams`,
            unit: '%',
            digits: 2,
            values: busy.map((all) => (all - idle) / STREAMS),
            references: relayed.map((all) => all / STREAMS),
            of: 'bare TCP relay',
            reached: 2.2,
            most: 0.7,
            note: `idle server ${number(idle, 2)} %`,
          }),
        ];
      } finally {
        await relay.stop();
      }
    }),
};
