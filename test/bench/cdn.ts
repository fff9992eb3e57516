import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';
import { atMost, number, type Line, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';
import { installed } from './wrk.ts';

const CONFIG = join(import.meta.dirname, '../../deploy/nginx-cache.conf');
const CROWD = 100;
const SETTLE_MS = 3000;
/** Percent of the requests: one of each hundred that are the same, and a quarter more. */
const MOST_PASSED = 1.25;
const LLHLS = `<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>
  <OriginMode>true</OriginMode>`;

/** LL-HLS players behind nginx as a cache: what of their requests comes to the server, and what that adds to their delay. */
export const cdn: Measurement = {
  name: 'cdn',
  run: async ({ clip, folder }) => {
    if (!installed('nginx')) return [{ what: 'LL-HLS behind a cache', measured: 'skipped: nginx is not installed' }];
    return withServer(
      async ({ kiln, publishers, llhls }) => {
        await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
        await kiln.liveStream('live');
        await delay(SETTLE_MS);
        const cache = await startCache(folder, kiln.ports.http);
        try {
          const lines: Line[] = [];
          for (const [where, port] of [
            ['a cache', cache.port],
            ['the server itself', kiln.ports.http],
          ] as const) {
            await llhls.ask('start', { port, master: '/app/live/llhls.m3u8', hints: true, count: CROWD });
            await delay(SETTLE_MS);
            await llhls.ask('reset', undefined);
            const before = await cache.counts();
            const cpu = await cpuPercent(kiln.pid);
            const { p50, p99, requests, failures } = await llhls.ask('report', { lastFrame: 0 });
            const asked = (await cache.counts()).map((count, index) => count - (before[index] ?? 0));
            await llhls.ask('stop', undefined);
            const [all = 0, passed = 0] = asked;
            lines.push({
              what: `newest frame at ${CROWD} LL-HLS viewers of ${where} p50`,
              measured: `${number(p50, 1)} ms, server ${number(cpu, 1)} %`,
              reference: `p99 ${number(p99)} ms, ${requests} requests${failures.length > 0 ? `, ${failures.length} FAILED` : ''}`,
            });
            if (port === cache.port)
              lines.push(
                atMost({
                  what: 'requests of them that come to the server',
                  unit: '%',
                  digits: 2,
                  values: [(passed / all) * 100],
                  budget: [MOST_PASSED],
                  reference: `${passed} of ${all}`,
                }),
              );
          }
          return lines;
        } finally {
          cache.stop();
        }
      },
      { llhls: LLHLS },
    );
  },
};

/** nginx with deploy/nginx-cache.conf in front of one server. */
async function startCache(folder: string, upstream: number) {
  const [port] = freePorts(1) as [number];
  const files = join(folder, 'cache');
  const log = join(files, 'access.log');
  await mkdir(files, { recursive: true });
  const text = (await readFile(CONFIG, 'utf8'))
    .replaceAll(/^ *server node-\d:3333.*\n/gm, '')
    .replace('keepalive 64;', `server 127.0.0.1:${upstream}; keepalive 64;`)
    .replace('listen 3333', `listen 127.0.0.1:${port}`)
    .replace('/run/', `${files}/`)
    .replace('/var/cache/nginx/kiln', join(files, 'kiln'))
    .replace('access_log off;', `log_format status '$upstream_cache_status'; access_log ${log} status;`);
  await writeFile(join(files, 'nginx.conf'), `daemon off;\nuser root;\n${text}`);
  const args = ['-c', join(files, 'nginx.conf'), '-p', files, '-e', 'stderr'];
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  await until('nginx', async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) !== undefined);
  return {
    port,
    stop: () => child.kill('SIGTERM'),
    /** Requests for media and chunklists: all, and those that were passed on. */
    async counts(): Promise<readonly [number, number]> {
      const states = (await readFile(log, 'utf8')).split('\n').filter((state) => state !== '' && state !== '-');
      return [states.length, states.filter((state) => state !== 'HIT').length];
    },
  };
}
