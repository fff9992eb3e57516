import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { median } from '../support/load/statistics.ts';
import { besideAnother } from './beside.ts';
import type { BenchContext, Line, Measurement } from './measurement.ts';
import { costLine } from './ratio.ts';
import { LLHLS } from './server.ts';

const STREAMS = 10;
/** Percent of a core that encryption may add to a stream of 2.5 Mbit/s. */
const MOST = 0.15;
const ID = '572543f964e34dc68ba9ba9ef91d4364';

/** CPU that encryption adds to streams. */
export const drm: Measurement = {
  name: 'drm',
  run: async (context) => [await encrypted(context, 'cbcs'), await encrypted(context, 'cenc')],
};

async function encrypted(context: BenchContext, scheme: 'cbcs' | 'cenc'): Promise<Line> {
  const infoFile = join(context.folder, `${scheme}.xml`);
  await writeFile(
    infoFile,
    `<DRMInfo><DRM><CencProtectScheme>${scheme}</CencProtectScheme><KeyId>${ID}</KeyId><Key>${ID}</Key><Iv>${ID}</Iv>` +
      `<Pssh>000000327073736800000000edef8ba979d64acea3c827dcd51d21ed000000121210${ID}</Pssh></DRM></DRMInfo>`,
  );
  const element = `<DRM><Enable>true</Enable><InfoFile>${infoFile}</InfoFile></DRM>`;
  const { values, references } = await besideAnother(context, STREAMS, LLHLS + element);
  const line = costLine({
    what: `CPU of ${STREAMS} streams that are encrypted, ${scheme}`,
    ...{ unit: '%', digits: 1, values, references, of: 'the same in clear' },
  });
  const added = median(values.map((value, round) => (value - (references[round] ?? 0)) / STREAMS));
  return { ...line, budget: `<= ${MOST} % more for each`, met: added <= MOST };
}
