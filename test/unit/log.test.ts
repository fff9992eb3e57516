import test from 'ava';
import { pino } from 'pino';
import { FaultLog } from '../../src/log.ts';

interface Line {
  msg: string;
  count: number;
}

function collect() {
  const lines: Line[] = [];
  const log = pino({ base: undefined }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { lines, faults: new FaultLog(log) };
}

test('faults are counted by kind and told at the end', (t) => {
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
