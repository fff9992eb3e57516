import test from 'ava';
import { RtpSender } from '../../../../src/protocols/rtp/sender.ts';
import { parseRtp } from '../../../support/webrtc/rtp.ts';

test('writes the header that RFC 3550 draws', (t) => {
  const sent: Buffer[] = [];
  const sender = new RtpSender({
    payloadType: 100,
    ssrc: 0xdeadbeef,
    sequence: 0xffff,
    output: (packet) => sent.push(Buffer.from(packet)),
  });
  sender.timestamp = 0x01020304;
  sender.payload.write('abc');
  sender.send(3, false);
  sender.timestamp = 2 ** 32 + 5;
  sender.payload.write('xy');
  sender.send(2, true);
  t.is(sent[0]?.toString('hex'), '8064ffff01020304deadbeef616263');
  t.is(sent[1]?.toString('hex'), '80e4000000000005deadbeef7879');
  t.deepEqual([sender.packets, sender.octets], [2, 5]);
});

test('an RTP sender writes the playout delay into every packet', (t) => {
  const sent: Buffer[] = [];
  const sender = new RtpSender({
    payloadType: 100,
    ssrc: 1,
    sequence: 0,
    playoutDelay: { id: 11, minMs: 100, maxMs: 40_950 },
    output: (packet) => sent.push(Buffer.from(packet)),
  });
  for (const text of ['first', 'second']) {
    sender.payload.write(text);
    sender.send(text.length, true);
  }
  const parsed = sent.map(parseRtp);
  t.deepEqual(
    parsed.map(({ payload }) => payload.toString()),
    ['first', 'second'],
  );
  // 12 bits of 10 ms each: 10 and 4095
  t.deepEqual(
    parsed.map(({ extensions }) => extensions.get(11)?.toString('hex')),
    ['00afff', '00afff'],
  );
});
