import { once } from 'node:events';
import { createServer } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { virtualTime } from '../../support/time/virtual-time.ts';

const MINUTES_MS = 600_000;

test.serial('virtual time skips although something has ended that was under way when it began', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  virtualTime(t);
  server.close();
  await once(server, 'close');
  const { loopCount } = performance.nodeTiming.uvMetricsInfo;
  await delay(MINUTES_MS);
  const turns = performance.nodeTiming.uvMetricsInfo.loopCount - loopCount;
  t.true(turns < MINUTES_MS / 2, `${turns} turns of the event loop`);
});

test.serial('virtual time goes by single milliseconds while something new is under way', async (t) => {
  const ended = createServer().listen(0, '127.0.0.1');
  await once(ended, 'listening');
  virtualTime(t);
  ended.close();
  await once(ended, 'close');
  await delay(1000);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { loopCount } = performance.nodeTiming.uvMetricsInfo;
  await delay(1000);
  t.true(performance.nodeTiming.uvMetricsInfo.loopCount - loopCount >= 990);
  server.close();
  await once(server, 'close');
});
