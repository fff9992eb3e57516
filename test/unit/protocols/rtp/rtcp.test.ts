import test from 'ava';
import { keyFrameRequests, writeSenderReport } from '../../../../src/protocols/rtp/rtcp.ts';

test('a sender report with its CNAME, byte by byte', (t) => {
  const report = writeSenderReport({
    ssrc: 0x11223344, wallMs: 1_700_000_000_500, rtpTime: 0xaabbccdd, packets: 3, octets: 1000, cname: 'abc',
  });
  t.is(report.toString('hex'), [
    '80c80006', '11223344', 'e8fe6f80', '80000000',
    'aabbccdd', '00000003', '000003e8',
    '81ca0003', '11223344', '01036162', '63000000',
  ].join(''));
});

test('every length of CNAME ends with a zero and a whole word', (t) => {
  for (let length = 1; length < 40; length++) {
    const report = writeSenderReport({ ssrc: 1, wallMs: 0, rtpTime: 0, packets: 0, octets: 0, cname: 'x'.repeat(length) });
    const description = report.subarray(28);
    t.is(description.length, 4 * (description.readUInt16BE(2) + 1));
    t.is(description[9], length);
    t.is(description[10 + length], 0);
  }
});

test('counts beyond 32 bits wrap', (t) => {
  const report = writeSenderReport({ ssrc: 1, wallMs: 0, rtpTime: 2 ** 32 + 7, packets: 2 ** 32 + 1, octets: 2 ** 33 + 2, cname: 'x' });
  t.deepEqual([16, 20, 24].map((at) => report.readUInt32BE(at)), [7, 1, 2]);
});

test('reads PLI and FIR in a compound packet, and passes over the rest', (t) => {
  const receiverReport = Buffer.from('80c9000100000001', 'hex');
  const pli = Buffer.from('81ce000200000001aabbccdd', 'hex');
  const fir = Buffer.from('84ce0006000000010000000011111111010000002222222202000000', 'hex');
  const nack = Buffer.from('81cd0003000000010000000300050000', 'hex');
  t.deepEqual(keyFrameRequests(Buffer.concat([receiverReport, nack, pli, fir])), [0xaabbccdd, 0x11111111, 0x22222222]);
});

test('a truncated compound packet asks for what was whole', (t) => {
  const pli = Buffer.from('81ce000200000001aabbccdd', 'hex');
  const twice = Buffer.concat([pli, pli]);
  for (let size = 0; size <= twice.length; size++) {
    t.is(keyFrameRequests(twice.subarray(0, size)).length, Math.floor(size / pli.length));
  }
});
