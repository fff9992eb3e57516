import test from 'ava';
import { Reception } from '../../../../../src/protocols/rtp/receive/reception.ts';
import { parseRtcp } from '../../../../../src/protocols/rtp/receive/rtcp.ts';
import { RtpError } from '../../../../../src/protocols/rtp/receive/error.ts';
import { writeReceiverReport, writeSenderReport } from '../../../../../src/protocols/rtp/rtcp.ts';

const NTP_OFFSET_MS = 2_208_988_800_000;

test('a sender report is read as it was written, also after a report of another kind', (t) => {
  const report = writeSenderReport({
    ssrc: 0x11223344,
    wallMs: 1_700_000_000_500,
    rtpTime: 0xaabbccdd,
    packets: 3,
    octets: 1000,
    cname: 'abc',
  });
  const { senders } = parseRtcp(Buffer.concat([writeReceiverReport(9, [], 'other'), report]));
  t.deepEqual(senders, [
    { ssrc: 0x11223344, ntpMs: 1_700_000_000_500 + NTP_OFFSET_MS, compactNtp: 0x6f808000, rtpTime: 0xaabbccdd },
  ]);
});

test('a sender without a clock has no time; a source that leaves says so', (t) => {
  const report = Buffer.from('80c8000600000007000000000000000000000005000000000000000081cb000100000007', 'hex');
  t.deepEqual(parseRtcp(report), { senders: [{ ssrc: 7, ntpMs: undefined, compactNtp: 0, rtpTime: 5 }], byes: [7] });
});

test('malformed sender reports are refused', (t) => {
  for (const hex of ['80c8', '40c80000', '80c80001', '80c8000100000000', '81cb000500000000']) {
    t.throws(() => parseRtcp(Buffer.from(hex, 'hex')), { instanceOf: RtpError }, hex);
  }
});

test('a receiver report, byte by byte', (t) => {
  const block = {
    ssrc: 0x01020304,
    fractionLost: 64,
    lost: -2,
    highest: 2 ** 32 + 0x10005,
    jitter: 33.4,
    lastReport: 0xcafebabe,
    sinceLastReport: 65_536.2,
  };
  t.is(
    writeReceiverReport(0xaabbccdd, [block], 'abc').toString('hex'),
    [
      '81c90007',
      'aabbccdd',
      '01020304',
      '40fffffe',
      '00010005',
      '00000021',
      'cafebabe',
      '00010000',
      '81ca0003',
      'aabbccdd',
      '01036162',
      '63000000',
    ].join(''),
  );
});

test('received packets are counted as RFC 3550 appendix A.3 does', (t) => {
  const reception = new Reception(90_000);
  t.is(reception.block(0), undefined);
  const take = (sequence: number, now: number, ssrc = 5, sentAt = now) =>
    reception.packet(
      {
        ssrc,
        sequence: sequence & 0xffff,
        timestamp: sentAt * 90,
        payloadType: 0,
        marker: false,
        payload: Buffer.alloc(0),
      },
      now,
    );
  for (const sequence of [65_530, 65_531, 65_533, 65_532, 65_536, 65_537]) take(sequence, sequence);
  // eight were sent, two did not come
  t.like(reception.block(0), {
    ssrc: 5,
    fractionLost: 64,
    lost: 2,
    highest: 65_537,
    jitter: 0,
    lastReport: 0,
    sinceLastReport: 0,
  });
  take(65_538, 65_538);
  reception.senderReport({ ssrc: 5, ntpMs: 1, compactNtp: 77, rtpTime: 0 }, 100);
  t.like(reception.block(600), { fractionLost: 0, lost: 2, highest: 65_538, lastReport: 77, sinceLastReport: 32_768 });
  take(65_539, 65_539 + 16, 5, 65_539);
  t.is(reception.block(600)?.jitter, 90);
  take(3, 70_000, 6);
  t.like(reception.block(700), { ssrc: 6, lost: 0, highest: 3, jitter: 0, lastReport: 0 });
});
