import test from 'ava';
import { pino } from 'pino';
import { signUrl } from '../../../src/access/policy/sign.ts';
import { FaultLog, jsonLogger } from '../../../src/log/log.ts';
import { createHttpPort } from '../../../src/web/http-port.ts';

interface Line {
  msg: string;
  count: number;
}

function collect() {
  const lines: Line[] = [];
  const log = pino({ base: undefined }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { lines, faults: new FaultLog(log) };
}

test('faults are counted by kind and reported at the end', (t) => {
  const { lines, faults } = collect();
  for (const fault of ['cut off', 'too long', 'cut off']) faults.count(fault);
  t.deepEqual(lines, []);
  faults.close();
  t.deepEqual(
    lines.map(({ msg, count }) => [msg, count]),
    [
      ['cut off', 2],
      ['too long', 1],
    ],
  );
  faults.close();
  t.is(lines.length, 2);
});

test('a stranger that makes up kinds of faults gets a few lines, and every fault is counted', (t) => {
  const { lines, faults } = collect();
  for (let i = 0; i < 10_000; i++) faults.count(`FourCC ${i} is not taken`);
  faults.close();
  t.true(lines.length <= 20, `${lines.length} lines`);
  t.is(
    lines.reduce((sum, { count }) => sum + count, 0),
    10_000,
  );
});

const SIGNING = { policyQueryKeyName: 'p', signatureQueryKeyName: 'sig', secretKey: 'k', algorithm: 'sha1' } as const;

function collectText() {
  const lines: string[] = [];
  return { lines, log: jsonLogger('info', { write: (line: string) => void lines.push(line) }) };
}

test('policy and signature of a URL are never logged, wherever a line has them', (t) => {
  const { lines, log } = collectText();
  const url = signUrl('http://a:80/app/stream?session=one', { url_expire: 1 }, SIGNING);
  const { searchParams } = new URL(url);
  log.warn({ url, err: new Error(`no such stream ${url}`), streamid: encodeURIComponent(url) }, `asked for ${url}.`);
  log.child({ of: url }, { level: 'error' }).error('a child');
  t.is(lines.length, 2);
  for (const secret of [searchParams.get('p'), searchParams.get('sig')])
    t.false(lines.some((line) => line.includes(secret as string)));
  t.like(JSON.parse(lines[0] as string), {
    url: 'http://a:80/app/stream?session=one&p=***&sig=***',
    streamid: 'http%3A%2F%2Fa%3A80%2Fapp%2Fstream%3Fsession%3Done%26p%3D***%26sig%3D***',
  });
});

test('a request that fails is logged without what it was signed with', async (t) => {
  const { lines, log } = collectText();
  const { app, close } = createHttpPort({ log });
  t.teardown(() => close(0));
  app.get('/app/stream', () => {
    throw new Error('of a test');
  });
  const url = signUrl('http://a:80/app/stream?_HLS_msn=7', { url_expire: 1 }, SIGNING);
  t.is((await app.inject(url)).statusCode, 500);
  t.is(lines.length, 1);
  t.regex(lines[0] as string, /"url":"\/app\/stream\?_HLS_msn=7&p=\*\*\*&sig=\*\*\*"/);
});
