import { median } from '../../support/load/statistics.ts';
import { AUTHORIZATION, startServer } from '../api.ts';
import { measureFiles, missingPrograms } from '../files.ts';
import { installed, wrk } from '../wrk.ts';
import { withServerOf, type Comparison } from './comparison.ts';
import { figure } from './figures.ts';

const ROUNDS = 3;

/** Calls of the management API, beside a server of Fastify alone. */
export const api: Comparison = {
  name: 'api',
  run: async ({ root }) => {
    if (!installed('wrk')) throw new Error('wrk is not installed');
    const bare = await startServer('bare-fastify.ts');
    try {
      return await withServerOf(root, async ({ kiln }) => {
        const calls: number[] = [];
        const shares: number[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          const reference = await wrk(`http://127.0.0.1:${bare.port}/`);
          const rate = await wrk(`http://127.0.0.1:${kiln.ports.api}/v1/version`, [AUTHORIZATION]);
          calls.push(rate);
          shares.push(rate / reference);
        }
        return [
          figure('/v1/version calls per second', '', 0, median(calls)),
          figure("/v1/version calls per second, of a bare Fastify server's", '', 3, median(shares)),
        ];
      });
    } finally {
      bare.stop();
    }
  },
};

/** LL-HLS answers, beside nginx with the same bytes as files. */
export const files: Comparison = {
  name: 'files',
  run: async (context) => {
    const missing = missingPrograms();
    if (missing.length > 0) throw new Error(`${missing.join(' and ')} not installed`);
    const answers = await measureFiles(context, { root: context.root });
    return answers.flatMap(({ kind, ours, nginx }) => [
      figure(`LL-HLS answers per second and core, ${kind}`, '', 0, median(ours)),
      figure(`LL-HLS answers per second and core, ${kind}, of nginx's`, '', 3, median(ours) / median(nginx)),
    ]);
  },
};
