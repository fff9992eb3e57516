import test from 'ava';
import { pino } from 'pino';
import { SrtLink } from '../../../../src/protocols/srt/link.ts';

const SENT = { packets: 100, lost: 0, retransmitted: 0, dropped: 0, buffered: 0 };
const RECEIVED = { ...SENT, belated: 0, undecryptable: 0 };

test('a lossy network is reported once a minute, as long as it is one', (t) => {
  const lines: string[] = [];
  const link = new SrtLink('received', pino({}, { write: (line: string) => void lines.push(line) }));
  const at = (now: number, received: Partial<typeof RECEIVED>, sent: Partial<typeof SENT> = {}): number => {
    link.counted({ rtt: 20, received: { ...RECEIVED, ...received }, sent: { ...SENT, ...sent }, capacity: 0 }, now);
    return lines.length;
  };
  t.is(at(0, {}, { lost: 4 }), 0, 'the other direction');
  t.is(at(1000, { lost: 1 }), 1);
  t.is(at(2000, { lost: 5 }), 1);
  t.is(at(61_000, { lost: 5, dropped: 1 }), 2);
  t.is(at(130_000, { lost: 5, dropped: 1 }), 2, 'nothing since');
  t.regex(lines[1] ?? '', /"rtt":20,"received":\{"packets":100,"lost":5,"retransmitted":0,"dropped":1,/);
});

test('the figures of a connection are those of the direction of its media', (t) => {
  const statistics = {
    rtt: 20.5,
    received: { ...RECEIVED, lost: 1, retransmitted: 2, dropped: 3, buffered: 110, belated: 4, undecryptable: 5 },
    sent: { ...SENT, packets: 7, lost: 8, buffered: 30 },
    capacity: 5_000_000,
  };
  const [receiver, sender] = [new SrtLink('received'), new SrtLink('sent')];
  t.is(receiver.figures, undefined);
  receiver.counted(statistics);
  sender.counted(statistics);
  t.deepEqual(receiver.figures, {
    rttMs: 20.5,
    capacity: 5_000_000,
    bufferedMs: 110,
    counts: { packets: 100, lost: 1, retransmitted: 2, dropped: 3, belated: 4, undecryptable: 5 },
  });
  t.deepEqual(sender.figures, {
    rttMs: 20.5,
    capacity: 5_000_000,
    bufferedMs: 30,
    counts: { packets: 7, lost: 8, retransmitted: 0, dropped: 0, belated: 0, undecryptable: 0 },
  });
});
