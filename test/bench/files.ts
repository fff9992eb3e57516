import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseChunklist } from '../support/load/llhls-player.ts';
import type { KilnOptions } from '../support/server/kiln.ts';
import { number, type BenchContext, type Measurement } from './measurement.ts';
import { startNginx } from './nginx.ts';
import { rateLine, ROUNDS } from './ratio.ts';
import { withServer } from './server.ts';
import { installed, wrkPerCpuSecond } from './wrk.ts';

const KINDS = ['part', 'chunklist'] as const;
type Kind = (typeof KINDS)[number];

/** Shares of nginx. */
const REACHED = { part: 0.72, chunklist: 0.57 } as const;
const SETTLE_MS = 3000;

/** Answers per second and core in each round, and bytes of an answer. */
export interface Answers {
  readonly kind: Kind;
  readonly ours: readonly number[];
  readonly nginx: readonly number[];
  readonly bytes: number;
}

/** LL-HLS answers, beside nginx with one worker process serving the same bytes from files. */
export const files: Measurement = {
  name: 'files',
  run: async (context) => {
    const missing = missingPrograms();
    if (missing.length > 0) {
      return [{ what: 'LL-HLS answers per second', measured: `skipped: ${missing.join(' and ')} not installed` }];
    }
    return (await measureFiles(context)).map(({ kind, ours, nginx, bytes }) =>
      rateLine({
        what: `LL-HLS answers per second and core: ${kind}, ${number(bytes / 1000, 1)} kB`,
        unit: '/s',
        digits: 0,
        values: ours,
        references: nginx,
        of: 'nginx with files',
        reached: REACHED[kind],
      }),
    );
  },
};

/** @returns programs that `measureFiles` needs and this machine lacks */
export function missingPrograms(): string[] {
  return ['wrk', 'nginx'].filter((program) => !installed(program));
}

/** Measures a server and nginx in turn. */
export async function measureFiles({ clip, folder }: BenchContext, options?: KilnOptions): Promise<Answers[]> {
  const nginx = await startNginx(folder);
  try {
    return await withServer(async ({ kiln, publishers }) => {
      await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
      await kiln.liveStream('live');
      await delay(SETTLE_MS);
      const rates: Record<Kind, { ours: number[]; nginx: number[] }> = {
        part: { ours: [], nginx: [] },
        chunklist: { ours: [], nginx: [] },
      };
      const bytes = { part: 0, chunklist: 0 };
      for (let round = 0; round < ROUNDS; round++) {
        const urls = await liveFiles(kiln.httpUrl('/app/live/llhls.m3u8'));
        for (const kind of KINDS) {
          const body = Buffer.from(await (await fetch(urls[kind])).arrayBuffer());
          bytes[kind] = body.length;
          // nginx keeps the size of a file that it has opened
          const name = `${kind}-${round}`;
          await writeFile(join(nginx.root, name), body);
          rates[kind].ours.push(await wrkPerCpuSecond(kiln.pid, urls[kind]));
          rates[kind].nginx.push(await wrkPerCpuSecond(nginx.pid, `${nginx.url}/${name}`));
        }
      }
      return KINDS.map((kind) => ({ kind, ...rates[kind], bytes: bytes[kind] }));
    }, options);
  } finally {
    await nginx.stop();
  }
}

/**
 * URLs of the video's newest part and of its chunklist, as a player asks for it that has waited for a part which is there: without
 * directives it would be held for a session that has it already.
 */
async function liveFiles(master: string): Promise<Record<Kind, string>> {
  const text = await (await fetch(master)).text();
  const chunklist = new URL(/^[^#\n].*$/m.exec(text)?.[0] ?? '', master).href;
  const { parts, msn } = parseChunklist(await (await fetch(chunklist)).text());
  return {
    chunklist: `${chunklist}?_HLS_msn=${msn - 1}&_HLS_part=0`,
    part: new URL(parts.at(-1) ?? '', chunklist).href,
  };
}
