import test from 'ava';
import { writeSenderReport } from '../../../../src/protocols/rtp/rtcp.ts';

test('a sender report with its CNAME, byte by byte', (t) => {
  const report = writeSenderReport({
    ssrc: 0x11223344,
    wallMs: 1_700_000_000_500,
    rtpTime: 0xaabbccdd,
    packets: 3,
    octets: 1000,
    cname: 'abc',
  });
  t.is(
    report.toString('hex'),
    [
      '80c80006',
      '11223344',
      'e8fe6f80',
      '80000000',
      'aabbccdd',
      '00000003',
      '000003e8',
      '81ca0003',
      '11223344',
      '01036162',
      '63000000',
    ].join(''),
  );
});

test('every length of CNAME ends with a zero and a whole word', (t) => {
  for (let length = 1; length < 40; length++) {
    const report = writeSenderReport({
      ssrc: 1,
      wallMs: 0,
      rtpTime: 0,
      packets: 0,
      octets: 0,
      cname: 'x'.repeat(length),
    });
    const description = report.subarray(28);
    t.is(description.length, 4 * (description.readUInt16BE(2) + 1));
    t.is(description[9], length);
    t.is(description[10 + length], 0);
  }
});

test('counts beyond 32 bits wrap', (t) => {
  const report = writeSenderReport({
    ssrc: 1,
    wallMs: 0,
    rtpTime: 2 ** 32 + 7,
    packets: 2 ** 32 + 1,
    octets: 2 ** 33 + 2,
    cname: 'x',
  });
  t.deepEqual(
    [16, 20, 24].map((at) => report.readUInt32BE(at)),
    [7, 1, 2],
  );
});
