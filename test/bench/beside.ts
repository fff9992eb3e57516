import { setTimeout as delay } from 'node:timers/promises';
import type { BenchContext } from './measurement.ts';
import type { Compared } from './ratio.ts';
import { cpuRounds, withServer } from './server.ts';

/** As for `ingest`. */
export const SETTLE_MS = 12_000;

/**
 * CPU of two servers with the same streams at the same time.
 * @param llhls elements of `LLHLS` of the one that is measured; the other one has what every server has
 */
export async function besideAnother(
  { clip }: BenchContext,
  streams: number,
  llhls: string,
): Promise<Pick<Compared, 'values' | 'references'>> {
  return await withServer(
    async (measured) =>
      await withServer(async (other) => {
        const names = Array.from({ length: streams }, (_, i) => `stream${i}`);
        for (const { kiln, publishers } of [measured, other])
          await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: names });
        await delay(SETTLE_MS);
        const [values = [], references = []] = await cpuRounds([[measured.kiln.pid], [other.kiln.pid]]);
        return { values, references };
      }),
    { llhls },
  );
}
