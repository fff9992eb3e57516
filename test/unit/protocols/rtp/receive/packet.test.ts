import test from 'ava';
import { RtpError } from '../../../../../src/protocols/rtp/receive/error.ts';
import { isRtcp, parseRtp } from '../../../../../src/protocols/rtp/receive/packet.ts';
import { seeded } from '../../../codecs/vectors.ts';

const parse = (hex: string) => parseRtp(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

test('the header that RFC 3550 draws', (t) => {
  const { payload, ...fields } = parse('80e1 fffe 89abcdef deadbeef 010203');
  t.deepEqual(fields, { payloadType: 97, marker: true, sequence: 0xfffe, timestamp: 0x89abcdef, ssrc: 0xdeadbeef });
  t.is(payload.toString('hex'), '010203');
});

test('contributing sources, an extension and padding are no payload', (t) => {
  const { payload, marker } = parse(
    'b2 60 0001 00000000 00000001 11111111 22222222 bede 0002 1000000000000000 aabb 000003',
  );
  t.is(payload.toString('hex'), 'aabb');
  t.false(marker);
  t.is(parse('a0 60 0001 00000000 00000001 01').payload.length, 0);
});

test('malformed RTP packets are refused', (t) => {
  for (const hex of [
    '',
    '80',
    '80600001000000000000',
    '40600001 00000000 00000001 00',
    '00600001 00000000 00000001',
    '81600001 00000000 00000001',
    '90600001 00000000 00000001 bede',
    '90600001 00000000 00000001 bede0001',
    'a0600001 00000000 00000001 aa00',
    'a0600001 00000000 00000001 aa03',
    'a0600001 00000000 00000001',
  ])
    t.throws(() => parse(hex), { instanceOf: RtpError }, hex);
});

test('RTCP is distinguished from RTP by its type', (t) => {
  t.true(isRtcp(Buffer.of(0x80, 200)));
  t.true(isRtcp(Buffer.of(0x81, 203)));
  t.false(isRtcp(Buffer.of(0x80, 0xe0)));
  t.false(isRtcp(Buffer.of(0x80, 96)));
  t.false(isRtcp(Buffer.alloc(0)));
});

test('random bytes are a packet or refused', (t) => {
  const random = seeded(1);
  for (let i = 0; i < 5000; i++) {
    const data = Buffer.from(Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256)));
    if (data.length > 0 && random() < 0.8) data[0] = 0x80 | ((data[0] as number) & 0x3f);
    try {
      const { payload } = parseRtp(data);
      t.true(payload.length <= data.length - 12);
    } catch (error) {
      t.true(error instanceof RtpError, String(error));
    }
  }
});
