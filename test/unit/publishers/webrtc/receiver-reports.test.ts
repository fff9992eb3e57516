import test from 'ava';
import { ReceiverReports } from '../../../../src/publishers/webrtc/receiver-reports.ts';
import type { Reception } from '../../../../src/quality/figures.ts';

type Stats = { type: string; packetCount: number; packetsLost: number; roundTripTime?: number };

/** A consumer whose statistics are given. */
function open() {
  const read: Reception[] = [];
  let stats: Stats[] | Error = [];
  let asked = 0;
  const consumer = {
    closed: false,
    getStats: async () => {
      asked++;
      if (stats instanceof Error) throw stats;
      return stats;
    },
  };
  const reports = new ReceiverReports(consumer as never, (reception) => read.push(reception));
  const after = async (seconds: number, next: Partial<Stats> | Error): Promise<Reception | undefined> => {
    stats = next instanceof Error ? next : [{ type: 'outbound-rtp', packetCount: 0, packetsLost: 0, ...next }];
    for (let second = 0; second < seconds; second++) reports.tick();
    await new Promise((done) => setImmediate(done));
    return read.pop();
  };
  return { consumer, after, asked: () => asked };
}

test('loss is a share of what was sent since the last reading', async (t) => {
  const { after, asked } = open();
  t.is(await after(9, { packetCount: 900, packetsLost: 9, roundTripTime: 40 }), undefined);
  t.deepEqual(await after(1, { packetCount: 1000, packetsLost: 10, roundTripTime: 40 }), {
    lossRatio: 0.01,
    roundTripSeconds: 0.04,
  });
  t.deepEqual(await after(10, { packetCount: 1500, packetsLost: 60, roundTripTime: 80.5 }), {
    lossRatio: 0.1,
    roundTripSeconds: 0.0805,
  });
  t.is(asked(), 2);
});

test('packets that came twice, and those that were sent before, make no impossible share', async (t) => {
  const { after } = open();
  t.is((await after(10, { packetCount: 100, packetsLost: -5, roundTripTime: 1 }))?.lossRatio, 0);
  t.is((await after(10, { packetCount: 101, packetsLost: 60, roundTripTime: 1 }))?.lossRatio, 1);
});

test('nothing is counted without a report, while nothing is sent, and after the end', async (t) => {
  const { after, consumer } = open();
  t.is(await after(10, { packetCount: 100 }), undefined);
  t.is(await after(10, { packetCount: 200, roundTripTime: 0 }), undefined);
  t.is(await after(10, { packetCount: 200, packetsLost: 20, roundTripTime: 40 }), undefined);
  t.is(await after(10, new Error('the consumer is closed')), undefined);
  t.is(await after(10, { type: 'inbound-rtp', packetCount: 300, roundTripTime: 40 }), undefined);
  consumer.closed = true;
  t.is(await after(10, { packetCount: 400, roundTripTime: 40 }), undefined);
});
