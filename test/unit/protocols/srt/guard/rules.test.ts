import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import koffi from 'koffi';
import { rules, WINDOW_NUMBERS, type Window } from '../../../../../src/protocols/srt/guard/rules.ts';
import { UdpSocket } from '../../../../../src/protocols/srt/guard/udp-socket.ts';
import { freePorts } from '../../../../support/network/ports.ts';
import { CONTROL, control, data, handshake, INDUCTION } from '../../../../support/srt/raw-caller.ts';
import { until } from '../../../../support/time/until.ts';

const libc = koffi.load(null);
const recv = libc.func('int64_t recv(int, void *, size_t, int)') as (...given: unknown[]) => number;
const DONT_WAIT = 0x40;
/** What always comes through, of a length of its own, is sent behind each packet: a kernel that is busy takes its time. */
const MARK = control(CONTROL.keepAlive, 1, ...Array.from({ length: 100 }, () => 0));
const ACK_TAIL = [100_000, 50_000, 8192, 1000, 1000, 1_000_000];

/** A socket with the rules. @returns what tells whether a packet comes through them */
async function guarded(t: ExecutionContext, windows: readonly Window[] | undefined) {
  const [port = 0] = freePorts(1);
  const udp = new UdpSocket('127.0.0.1', port, false);
  udp.filter(rules(windows));
  const sender = createSocket('udp4');
  sender.connect(port, '127.0.0.1');
  await once(sender, 'connect');
  t.teardown(() => {
    sender.close();
    udp.abandon();
  });
  const room = Buffer.alloc(2000);
  return async (packet: Buffer): Promise<boolean> => {
    for (const each of [packet, MARK]) await new Promise((sent) => sender.send(each, sent));
    const came: number[] = [];
    await until('the mark', () => {
      for (let length = 0; came.at(-1) !== MARK.length && length >= 0;) {
        length = recv(udp.descriptor, room, room.length, DONT_WAIT);
        if (length >= 0) came.push(length);
      }
      return came.at(-1) === MARK.length;
    });
    return came.length > 1;
  };
}

const ack = (socket: number, sequence: number, ...rest: number[]): Buffer =>
  control(CONTROL.ack, socket, sequence, ...(rest.length > 0 ? rest : ACK_TAIL));

test('packets of well-behaved SRT peers pass the guard', async (t) => {
  const passes = await guarded(t, [{ socket: 77, first: 5000 }]);
  const sane = [
    handshake({ type: INDUCTION }),
    handshake({}),
    handshake({ sequence: 0 }),
    handshake({ sequence: 0x7fff_ffff }),
    handshake({ packetBytes: 1360 }),
    handshake({ window: 25_600 }),
    handshake({ window: 100_000 }),
    data(5, 9, Buffer.alloc(1316)),
    data(5, 9, Buffer.alloc(0)),
    control(CONTROL.keepAlive, 9, 0),
    control(CONTROL.shutdown, 9, 0),
    control(CONTROL.ackAck, 9, 0),
    control(0x7fff, 9, 1, 2, 3),
    control(CONTROL.dropRequest, 9, 10, 10),
    control(CONTROL.dropRequest, 9, 0x7fff_fff0, 10),
    ack(77, 5000),
    ack(77, 5001),
    ack(77, 5000 + WINDOW_NUMBERS - 1),
    ack(77, 5001, 1, 1, 1),
    control(CONTROL.nak, 77, 5001),
    control(CONTROL.nak, 77, 0x8000_0000 + 5001, 5010),
  ];
  for (const packet of sane) t.true(await passes(packet), packet.toString('hex', 0, 60));
});

test('packets that harm libsrt do not pass the guard', async (t) => {
  const passes = await guarded(t, [{ socket: 77, first: 5000 }]);
  const harmful = [
    Buffer.alloc(0),
    Buffer.alloc(15),
    handshake({}).subarray(0, 60),
    handshake({ sequence: 0x8000_0000 }),
    handshake({ packetBytes: 0 }),
    handshake({ packetBytes: 76 }),
    handshake({ packetBytes: 0xffff_ffff }),
    handshake({ window: 0 }),
    handshake({ window: 1 }),
    handshake({ window: 0x7fff_ffff }),
    handshake({ window: 0xffff_fff0 }),
    handshake({ type: 0 }),
    handshake({ type: 1400 }),
    handshake({ type: 0xffff_fffe }),
    ack(77, 4999),
    ack(77, 5000 + WINDOW_NUMBERS),
    ack(77, 5000 + 2 ** 30 - 2),
    ack(77, 0x8000_1388),
    ack(78, 5001),
    ack(76, 5001),
    control(CONTROL.ack, 77, 5001),
    ack(77, 5001, ...ACK_TAIL, 1, 1),
    ack(77, 5001, 60_000_000, 1, 1),
    ack(77, 5001, 1, 60_000_000, 1),
    ack(77, 5001, 0xffff_ffff, 1, 1),
    control(CONTROL.nak, 78, 5001),
    control(CONTROL.nak, 77, 4000),
    control(CONTROL.nak, 77),
    control(CONTROL.dropRequest, 9, 1, 0x7fff_fffe),
    control(CONTROL.dropRequest, 9, 10, 9),
    control(CONTROL.dropRequest, 9, 0x8000_0001, 10),
    control(CONTROL.dropRequest, 9, 10),
    control(CONTROL.congestion, 9, 0),
    control(CONTROL.peerError, 9, 0),
    control(0x1234, 9, 0),
  ];
  for (const packet of harmful) t.false(await passes(packet), packet.toString('hex', 0, 60));
});

/** Extensions of a handshake behind its first one, each of a type and so many words. */
const extended = (...extensions: readonly (readonly [type: number, words: number])[]): Buffer =>
  Buffer.concat([
    handshake({}),
    ...extensions.map(([type, words]) => {
      const extension = Buffer.alloc(4 + 4 * words);
      extension.writeUInt16BE(type);
      extension.writeUInt16BE(words, 2);
      return extension;
    }),
  ]);
/** An extension that comes by itself. */
const own = (subtype: number, bytes: number): Buffer =>
  Buffer.concat([
    control(0x7fff, 9).subarray(0, 2),
    Buffer.of(0, subtype),
    control(0, 9).subarray(4),
    Buffer.alloc(bytes),
  ]);

test('keys have the sizes that there are', async (t) => {
  const passes = await guarded(t, []);
  const [hsreq, kmreq, kmrsp, sid, congestion, filter, group] = [1, 3, 4, 5, 6, 7, 8] as const;
  for (const type of [kmreq, kmrsp]) {
    for (const words of [1, 14, 16, 18, 22, 26]) {
      t.true(await passes(extended([type, words])), `${words} words`);
      t.true(await passes(extended([sid, 128], [congestion, 1], [type, words], [filter, 4])), `${words} words`);
      t.true(await passes(own(type, 4 * words)), `${words} words by themselves`);
    }
    for (const words of [0, 27, 200]) {
      t.false(await passes(extended([type, words])), `${words} words`);
      t.false(await passes(extended([sid, 128], [congestion, 1], [type, words], [filter, 4])), `${words} words`);
      t.false(await passes(own(type, 4 * words)), `${words} words by themselves`);
    }
    t.false(await passes(own(type, 57)), 'half a word');
  }
  const many = [kmreq, sid, congestion, filter, group, hsreq] as const;
  t.true(await passes(extended(...many.map((type) => [type, 4] as const))));
  t.false(await passes(extended(...[...many, ...many].map((type) => [type, 4] as const))), 'more than there are types');
  for (const bytes of [0, 12, 600]) t.true(await passes(own(hsreq, bytes)), 'no keys');
});

test('a report of losses ends in no range', async (t) => {
  const passes = await guarded(t, [{ socket: 77, first: 5000 }]);
  const from = 0x8000_0000 + 5001;
  t.true(await passes(control(CONTROL.nak, 77, from, 5010, 5020)));
  t.true(await passes(control(CONTROL.nak, 77, 5001, from + 3, 5010)));
  t.false(await passes(control(CONTROL.nak, 77, from)));
  t.false(await passes(control(CONTROL.nak, 77, 5001, from + 3)));
  t.false(await passes(Buffer.concat([control(CONTROL.nak, 77, 5001), Buffer.alloc(2)])));
});

test('windows of many sockets are distinguished, and begin anew after the last number', async (t) => {
  for (const count of [1, 2, 3, 64, 255, 1000]) {
    const windows = Array.from({ length: count }, (_, i) => ({
      socket: 10_000 + 2 * i,
      first: (0x7fff_ff00 + i * 2 ** 20) % 2 ** 31,
    }));
    const passes = await guarded(t, windows);
    for (const { socket, first } of windows.filter((_, i) => i % 37 === 0 || i === count - 1)) {
      t.true(await passes(ack(socket, (first + 1000) % 2 ** 31)), `${count}: ${socket}`);
      t.false(await passes(ack(socket, (first + 2 ** 20) % 2 ** 31)), `${count}: ${socket}, of another`);
      t.false(await passes(ack(socket + 1, first)), `${count}: ${socket + 1}, which is none`);
    }
  }
});

test('without windows of SRT sockets no peer may acknowledge, or any', async (t) => {
  t.false(await (await guarded(t, []))(ack(77, 5001)));
  const passes = await guarded(t, undefined);
  t.true(await passes(ack(77, 5001)));
  t.false(await passes(ack(77, 0x8000_0001)));
});

test('more sockets than the kernel takes are an error', (t) => {
  const windows = Array.from({ length: 1400 }, (_, i) => ({ socket: i, first: i }));
  const udp = new UdpSocket('127.0.0.1', 0, false);
  t.throws(() => udp.filter(rules(windows)), { instanceOf: RangeError });
  udp.abandon();
});
