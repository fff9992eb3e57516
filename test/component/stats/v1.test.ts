import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { Counters } from '../../../src/core/counters.ts';
import { localTime } from '../../../src/lib/local-time.ts';
import { statisticsV1 } from '../../../src/stats/v1.ts';

/** A process has one zone, so each is asked for in a process of its own. */
async function localTimeIn(zone: string, times: number[]): Promise<string[]> {
  const module = new URL('../../../src/lib/local-time.ts', import.meta.url).href;
  const script = `const { localTime } = await import(${JSON.stringify(module)});
    console.log(JSON.stringify(${JSON.stringify(times)}.map(localTime)));`;
  const env = { ...process.env, TZ: zone };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env });
  return JSON.parse(stdout) as string[];
}

test('local times carry the offset of their own moment', async (t) => {
  const summer = Date.UTC(2026, 6, 1, 12, 0, 0, 7);
  const winter = Date.UTC(2026, 0, 1, 23, 59, 59, 999);
  const zones: [zone: string, summer: string, winter: string][] = [
    ['UTC', '2026-07-01T12:00:00.007+00:00', '2026-01-01T23:59:59.999+00:00'],
    ['Europe/Berlin', '2026-07-01T14:00:00.007+02:00', '2026-01-02T00:59:59.999+01:00'],
    ['America/St_Johns', '2026-07-01T09:30:00.007-02:30', '2026-01-01T20:29:59.999-03:30'],
    ['Asia/Kathmandu', '2026-07-01T17:45:00.007+05:45', '2026-01-02T05:44:59.999+05:45'],
  ];
  await Promise.all(
    zones.map(async ([zone, ...expected]) => {
      t.deepEqual(await localTimeIn(zone, [summer, winter]), expected, zone);
    }),
  );
  t.is(Date.parse(localTime(summer)), summer);
});

test('throughput: bytes of the last window, bits per second, the highest of them', (t) => {
  const counters = new Counters();
  const start = counters.createdTime;
  counters.received(500, start + 400);
  counters.received(500, start + 1000);
  counters.received(100, start + 2000);
  counters.sent(250, start + 2000);
  t.like(statisticsV1(counters), {
    totalBytesIn: 1100,
    lastThroughputIn: 100,
    avgThroughputIn: 800,
    maxThroughputIn: 8000,
    totalBytesOut: 250,
    lastThroughputOut: 250,
    avgThroughputOut: 1000,
    maxThroughputOut: 1000,
    createdTime: localTime(start),
    lastRecvTime: localTime(start + 2000),
    lastSentTime: localTime(start + 2000),
    lastUpdatedTime: localTime(start + 2000),
    maxTotalConnectionTime: localTime(start),
  });
});
