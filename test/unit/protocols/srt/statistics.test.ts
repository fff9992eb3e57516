import test from 'ava';
import { readStatistics, STATISTICS_BYTES } from '../../../../src/protocols/srt/statistics.ts';

test('fields of CBytePerfMon are read where srt.h has them', (t) => {
  const struct = Buffer.alloc(STATISTICS_BYTES);
  // pktSentTotal, pktRecvTotal
  struct.writeBigInt64LE(11n, 8);
  struct.writeBigInt64LE(12n, 16);
  // pktSndLossTotal, pktRcvLossTotal, pktRetransTotal, pktSndDropTotal, pktRcvDropTotal, pktRcvUndecryptTotal
  for (const [value, at] of [
    [1, 24],
    [2, 28],
    [3, 32],
    [4, 64],
    [5, 68],
    [6, 72],
    // pktRcvRetrans, msSndBuf, msRcvBuf
    [7, 164],
    [8, 372],
    [9, 388],
  ] as const)
    struct.writeInt32LE(value, at);
  // pktRcvBelated
  struct.writeBigInt64LE(10n, 224);
  // msRTT, mbpsBandwidth
  struct.writeDoubleLE(1.5, 328);
  struct.writeDoubleLE(2.25, 336);
  t.deepEqual(readStatistics(struct), {
    rtt: 1.5,
    received: { packets: 12, lost: 2, retransmitted: 7, dropped: 5, buffered: 9, belated: 10, undecryptable: 6 },
    sent: { packets: 11, lost: 1, retransmitted: 3, dropped: 4, buffered: 8 },
    capacity: 2_250_000,
  });
});
