import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import test from 'ava';

const MODULE = resolve('src/lib/local-time.ts');
const TIMES = ['2026-03-29T00:59:59.999Z', '2026-03-29T01:00:00Z', '2026-10-25T00:30:00Z', '2026-10-25T01:30:00.001Z'];
const SCRIPT = `
  import { localTime } from ${JSON.stringify(MODULE)};
  console.log(JSON.stringify(${JSON.stringify(TIMES)}.map((time) => localTime(Date.parse(time)))));
`;

/** What a server in a zone shows. */
function shown(zone: string): unknown {
  const { execPath: node } = process;
  const env = { ...process.env, TZ: zone };
  return JSON.parse(execFileSync(node, ['--input-type=module', '-e', SCRIPT], { env, encoding: 'utf8' }));
}

test('a time is shown with the offset that is in force then', (t) => {
  t.deepEqual(shown('Europe/Berlin'), [
    '2026-03-29T01:59:59.999+01:00',
    '2026-03-29T03:00:00.000+02:00',
    '2026-10-25T02:30:00.000+02:00',
    '2026-10-25T02:30:00.001+01:00',
  ]);
  t.deepEqual(shown('America/St_Johns'), [
    '2026-03-28T22:29:59.999-02:30',
    '2026-03-28T22:30:00.000-02:30',
    '2026-10-24T22:00:00.000-02:30',
    '2026-10-24T23:00:00.001-02:30',
  ]);
  t.deepEqual(shown('UTC'), [
    '2026-03-29T00:59:59.999+00:00',
    '2026-03-29T01:00:00.000+00:00',
    '2026-10-25T00:30:00.000+00:00',
    '2026-10-25T01:30:00.001+00:00',
  ]);
});
