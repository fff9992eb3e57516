import test from 'ava';
import { pino } from 'pino';
import { LossLog } from '../../../../src/protocols/srt/loss-log.ts';

const NONE = { packets: 100, lost: 0, retransmitted: 0, dropped: 0 };

test('a lossy network is reported once a minute, as long as it is one', (t) => {
  const lines: string[] = [];
  const losses = new LossLog(pino({}, { write: (line: string) => void lines.push(line) }), 'received');
  const at = (now: number, received: Partial<typeof NONE>, sent: Partial<typeof NONE> = {}): number => {
    losses.add({ rtt: 20, received: { ...NONE, ...received }, sent: { ...NONE, ...sent } }, now);
    return lines.length;
  };
  t.is(at(0, {}, { lost: 4 }), 0, 'the other direction');
  t.is(at(1000, { lost: 1 }), 1);
  t.is(at(2000, { lost: 5 }), 1);
  t.is(at(61_000, { lost: 5, dropped: 1 }), 2);
  t.is(at(130_000, { lost: 5, dropped: 1 }), 2, 'nothing since');
  t.regex(lines[1] ?? '', /"rtt":20,"received":\{"packets":100,"lost":5,"retransmitted":0,"dropped":1\}/);
});
