import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { Program } from '../support/load/program.ts';
import type { FileCommands } from '../support/load/programs/write-files.ts';
import { number, type Measurement } from './measurement.ts';
import { costLine } from './ratio.ts';
import { cpuPercent, cpuRounds, withServer } from './server.ts';

const STREAMS = 5;
const EACH = 10;
const SETTLE_MS = 8000;
/** Of a round: bare files are little beside the ticks of the kernel's clock. */
const SECONDS = 8;
const APP = '/v1/vhosts/default/apps/app';
/** Times bare files; MPEG-TS is made of the packets for each recording anew. */
const REACHED = { mp4: 2.9, ts: 8 } as const;
/** Percent of a core. */
const MOST = { mp4: 0.15, ts: undefined } as const;
/** Of the clip, its sound included. */
const KBIT = 2600;

/** What each recording of a stream costs, beside taking the stream in and packaging it. */
export const record: Measurement = {
  name: 'record',
  run: ({ clip, folder }) => {
    const publishers = `<FILE><RootPath>${join(folder, 'records')}</RootPath></FILE>`;
    return withServer(
      async ({ kiln, publishers: programs }) => {
        const bare = new Program<FileCommands>('write-files.ts');
        try {
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
            await bare.ask('start', { folder, count: STREAMS * EACH, kbit: KBIT });
            const [during = [], written = []] = await cpuRounds([[kiln.pid], [bare.pid]], { seconds: SECONDS });
            await bare.ask('stop', undefined);
            await each(streams, (_, id) => call(kiln, 'stopRecord', { id }));
            await delay(SETTLE_MS / 2);
            const after = await cpuPercent(kiln.pid);
            const ingest = (before - idle) / STREAMS;
            lines.push(
              costLine({
                what: `CPU per recording into ${extension.toUpperCase()}, ${STREAMS * EACH} recordings of ${STREAMS} streams`,
                unit: '%',
                digits: 3,
                values: during.map((cpu) => (cpu - (before + after) / 2) / (STREAMS * EACH)),
                references: written.map((cpu) => cpu / (STREAMS * EACH)),
                of: 'bare files',
                reached: REACHED[extension],
                ...(MOST[extension] !== undefined && { most: MOST[extension] }),
                note: `ingest ${number(ingest, 2)} %`,
              }),
            );
          }
          return lines;
        } finally {
          await bare.stop();
        }
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
