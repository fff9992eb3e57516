import test from 'ava';
import { OvtError } from '../../../../src/protocols/ovt/error.ts';
import { FrameWriter, type FrameInfo } from '../../../../src/protocols/ovt/media.ts';
import { readMessage, writeMessage } from '../../../../src/protocols/ovt/message.ts';
import { PAYLOAD } from '../../../../src/protocols/ovt/packet.ts';
import { hex, LIMITS, receive } from './support.ts';

/** Headers of packets and of media (docs/compatibility.md#ovt), by hand. */
const REQUEST = Buffer.concat([hex('60 0a 0000 0000018bcfe56800 00000000 0008'), Buffer.from('{"id":1}')]);
const KEY_FRAME = hex(`
  60 1e 0000 00000000000015f9 00000007 0027
  00000002 00000000000015f9 0000000000000bb8 0000000000000bb8 00 02 01 03 00000003
  aabbcc`);
const INFO: FrameInfo = {
  track: 2,
  pts: 5625,
  dts: 3000,
  duration: 3000,
  mediaType: 0,
  key: true,
  bitstream: 1,
  packetType: 3,
};

function frames(session: number, list: readonly (readonly [FrameInfo, readonly Buffer[]])[]): Buffer {
  const writer = new FrameWriter(session);
  const pieces: Buffer[] = [];
  for (const [info, data] of list) {
    writer.write(info, data, Buffer.concat(data).length, (piece) => pieces.push(piece));
  }
  return Buffer.concat(pieces);
}

test('a message of one packet, both ways', (t) => {
  t.deepEqual(writeMessage(PAYLOAD.request, { id: 1 }, 1_700_000_000_000), REQUEST);
  t.deepEqual(receive(REQUEST).messages, ['{"id":1}']);
});

test('a frame of one packet, both ways', (t) => {
  t.deepEqual(frames(7, [[INFO, [hex('aabbcc')]]]), KEY_FRAME);
  for (const piece of [KEY_FRAME.length, 1, 18, 19, 54]) {
    const {
      frames: [frame],
    } = receive(KEY_FRAME, piece);
    t.like(frame, INFO);
    t.deepEqual(frame?.data, hex('aabbcc'));
  }
});

test('a message over several packets is cut at 32750 bytes, numbered from 0, with the marker on the last', (t) => {
  const message = { id: 5, text: 'x'.repeat(70_000) };
  const wire = writeMessage(PAYLOAD.response, message, 0);
  const starts = [0, 32_768, 65_536];
  t.deepEqual(
    starts.map((at) => wire.subarray(at, at + 4).toString('hex')),
    ['40140000', '40140001', '60140002'],
  );
  t.deepEqual(
    starts.map((at) => wire.readUInt16BE(at + 16)),
    [32_750, 32_750, wire.length - 65_536 - 18],
  );
  for (const piece of [wire.length, 1000, 32_767, 7])
    t.deepEqual(JSON.parse(receive(wire, piece).messages[0] ?? ''), message);
});

test('a message that begins anew in the middle of another takes its place', (t) => {
  const wire = writeMessage(PAYLOAD.response, { text: 'x'.repeat(40_000) }, 0);
  const { messages } = receive(Buffer.concat([wire.subarray(0, 32_768), REQUEST]));
  t.deepEqual(messages, ['{"id":1}']);
});

test('a frame over several packets comes out whole, whatever pieces it is sent and received in', (t) => {
  const data = Buffer.from(Array.from({ length: 90_000 }, (_, i) => (i * 7) & 0xff));
  const cuts = [0, 1, 5, 32_696, 32_700, 70_000, 90_000];
  const pieces = cuts.slice(1).map((end, i) => data.subarray(cuts[i], end));
  const wire = frames(1, [
    [INFO, [data]],
    [{ ...INFO, key: false }, pieces],
  ]);
  t.is(wire.length, 2 * (90_000 + 36 + 3 * 18));
  const counters = [0, 1, 2].map((i) => wire.readUInt16BE(wire.length / 2 + i * 32_768 + 2));
  t.deepEqual(counters, [3, 4, 5]);
  for (const piece of [wire.length, 4096, 65_536, 13]) {
    const received = receive(wire, piece);
    t.deepEqual(
      received.frames.map((frame) => [frame.key, frame.data.equals(data)]),
      [
        [true, true],
        [false, true],
      ],
    );
    t.is(received.losses, 0);
  }
});

test('a frame without data, and one that fills its packet', (t) => {
  const full = Buffer.alloc(32_750 - 36, 1);
  const wire = frames(1, [
    [INFO, []],
    [INFO, [full]],
    [INFO, [Buffer.concat([full, hex('02')])]],
  ]);
  t.is(wire.length, 54 + 32_768 + 32_768 + 18 + 1);
  t.deepEqual(
    receive(wire).frames.map(({ data }) => data.length),
    [0, 32_714, 32_715],
  );
});

test('no data is copied on the way out', (t) => {
  const data = Buffer.alloc(100_000, 1);
  const put: Buffer[] = [];
  new FrameWriter(1).write(INFO, [data], data.length, (piece) => put.push(piece));
  const slices = put.filter(({ buffer }) => buffer === data.buffer);
  t.is(
    slices.reduce((sum, { length }) => sum + length, 0),
    data.length,
  );
});

test('times are integers of 64 bits, negative ones too', (t) => {
  const times = [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 5, 2 ** 53 - 1, -1, -90_000, -(2 ** 33) - 7];
  const wire = frames(
    1,
    times.map((time) => [{ ...INFO, pts: time, dts: time }, []]),
  );
  t.deepEqual(
    receive(wire).frames.map(({ pts, dts }) => [pts, dts]),
    times.map((time) => [time, time]),
  );
  const beyond = Buffer.from(KEY_FRAME);
  beyond.writeBigUInt64BE(2n ** 60n, 18 + 4);
  beyond.writeBigUInt64BE(2n ** 64n - 1n, 18 + 20);
  t.like(receive(beyond).frames[0], { pts: NaN, duration: 0 });
});

test('an OVT reader that joins in the middle of a frame begins after the marker', (t) => {
  const data = Buffer.alloc(70_000, 9);
  const wire = frames(1, [
    [INFO, [data]],
    [{ ...INFO, dts: 6000 }, [hex('01')]],
  ]);
  for (const from of [32_768, 65_536]) {
    const received = receive(wire.subarray(from), 10_000);
    t.deepEqual(
      received.frames.map(({ dts }) => dts),
      [6000],
    );
  }
});

test('a gap in the numbers leaves out what is not whole', (t) => {
  const data = Buffer.alloc(70_000, 9);
  const infos = [1, 2, 3, 4].map((dts) => ({ ...INFO, dts }));
  const wire = frames(
    1,
    infos.map((info) => [info, [data]]),
  );
  const each = wire.length / 4;
  const gone = Buffer.concat([wire.subarray(0, each + 32_768), wire.subarray(each + 65_536)]);
  t.deepEqual(
    receive(gone, 5000).frames.map(({ dts }) => dts),
    [1, 3, 4],
  );
  t.is(receive(gone, 5000).losses, 1);
  const wrapped = Buffer.from(wire);
  for (let i = 0; i < 4; i++) {
    for (let packet = 0; packet < 3; packet++)
      wrapped.writeUInt16BE((65_530 + i * 3 + packet) & 0xffff, i * each + packet * 32_768 + 2);
  }
  t.is(receive(wrapped).frames.length, 4, 'the numbers wrap');
});

test('packets that break the OVT protocol are rejected', (t) => {
  const changed = (at: number, value: number) => {
    const wire = Buffer.from(KEY_FRAME);
    wire[at] = value;
    return wire;
  };
  const second = changed(3, 1);
  second.writeUInt32BE(4, 18 + 32);
  for (const [wire, message] of [
    [changed(0, 0xa0), 'packet version 2 is not 1'],
    [changed(1, 11), 'a packet has payload type 11'],
    [changed(16, 0x80), 'a packet has 32807 bytes of payload'],
    [Buffer.concat([KEY_FRAME, second]), 'the packets of a frame do not add up to its size'],
  ] as const) {
    t.throws(() => receive(wire), { instanceOf: OvtError, message });
  }
});

test('incomplete OVT messages are bounded', (t) => {
  const message = writeMessage(PAYLOAD.request, { text: 'x'.repeat(100_000) }, 0);
  t.throws(() => receive(message), { instanceOf: OvtError, message: 'a message has more than 100000 bytes' });
  const media = frames(1, [
    [INFO, [Buffer.alloc(1)]],
    [INFO, [Buffer.alloc(200_001)]],
  ]);
  t.throws(() => receive(media), { instanceOf: OvtError });
  t.throws(() => receive(KEY_FRAME, 10, { ...LIMITS, frameBytes: 0 }), {
    instanceOf: OvtError,
    message: 'media before it was requested',
  });
});

test('a message that is no object of JSON is none', (t) => {
  for (const text of ['', '{', '[]', '1', 'null', '"a"', '\xff'])
    t.is(readMessage(Buffer.from(text, 'latin1')), undefined);
  t.deepEqual(readMessage(Buffer.from('{"id":1,"__proto__":{"a":1}}'))?.id, 1);
});
