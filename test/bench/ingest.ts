import { setTimeout as delay } from 'node:timers/promises';
import { atMost, number, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';

const STREAMS = 10;
/** Until what runs often is compiled, as on a server that has been up for a while. */
const SETTLE_MS = 12_000;

/** Taking streams in over RTMP and packaging them for LL-HLS, with nobody watching. */
export const ingest: Measurement = {
  name: 'ingest',
  run: ({ clip }) =>
    withServer(async ({ kiln, publishers }) => {
      const idle = await cpuPercent(kiln.pid, { times: 1 });
      const streams = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
      await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams });
      await delay(SETTLE_MS);
      const busy = await cpuPercent(kiln.pid);
      return [
        atMost({
          what: `ingest and packaging CPU per stream, ${STREAMS} streams`,
          unit: '%',
          digits: 2,
          values: [(busy - idle) / STREAMS],
          budget: [0.7],
          reference: `idle server ${number(idle, 2)} %`,
        }),
      ];
    }),
};
