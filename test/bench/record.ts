import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { atMost, number, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';

const STREAMS = 5;
const EACH = 10;
const SETTLE_MS = 8000;
const APP = '/v1/vhosts/default/apps/app';
/** Percent of a core for a recording; MPEG-TS is made of the packets for each recording anew. */
const BUDGETS = { mp4: [0.15], ts: undefined } as const;

/** What each recording of a stream costs, beside taking the stream in and packaging it. */
export const record: Measurement = {
  name: 'record',
  run: ({ clip, folder }) => {
    const publishers = `<FILE><RootPath>${join(folder, 'records')}</RootPath></FILE>`;
    return withServer(
      async ({ kiln, publishers: programs }) => {
        const idle = await cpuPercent(kiln.pid, { times: 1 });
        const streams = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
        await programs.ask('start', { port: kiln.ports.rtmp, clip, streams });
        await delay(SETTLE_MS);
        const lines = [];
        for (const extension of ['mp4', 'ts'] as const) {
          const before = await cpuPercent(kiln.pid);
          await each(streams, (stream, id) =>
            call(kiln, 'startRecord', {
              id,
              stream: { name: stream },
              filePath: `\${Id}.${extension}`,
              infoPath: `${id}.xml`,
            }),
          );
          await delay(SETTLE_MS);
          const during = await cpuPercent(kiln.pid);
          await each(streams, (_, id) => call(kiln, 'stopRecord', { id }));
          await delay(SETTLE_MS / 2);
          const after = await cpuPercent(kiln.pid);
          const ingest = (before - idle) / STREAMS;
          const cost = (during - (before + after) / 2) / (STREAMS * EACH);
          lines.push(
            atMost({
              what: `CPU per recording into ${extension.toUpperCase()}, ${STREAMS * EACH} recordings of ${STREAMS} streams`,
              unit: '%',
              digits: 3,
              values: [cost],
              ...(BUDGETS[extension] && { budget: BUDGETS[extension] }),
              reference: `${number(cost / ingest, 3)} of ingest, ${number(ingest, 2)} %`,
            }),
          );
        }
        return lines;
      },
      { publishers },
    );
  },
};

async function each(streams: readonly string[], work: (stream: string, id: string) => Promise<void>): Promise<void> {
  for (const stream of streams) for (let n = 0; n < EACH; n++) await work(stream, `${stream}-${n}`);
}

async function call(kiln: Kiln, action: string, body: object): Promise<void> {
  const { status } = await kiln.api(`${APP}:${action}`, 'POST', body);
  if (status !== 200) throw new Error(`${action} was answered ${status}`);
}
