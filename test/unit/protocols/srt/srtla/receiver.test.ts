import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { SrtlaReceiver } from '../../../../../src/protocols/srt/srtla/receiver.ts';
import { seeded } from '../../../codecs/vectors.ts';

const REG1 = 0x9200;
const REG2 = 0x9201;
const [REG3, ERROR, NO_GROUP] = ['9202', '9210', '9211'];
const LOCAL = { address: '127.0.0.1', port: 40_000 };

/** A receiver of which the test has the clock, the network and the SRT port. */
function start(t: ExecutionContext, open = (): Promise<void> => Promise.resolve()) {
  let now = 0;
  let opened = 0;
  const forwarded: string[] = [];
  const answers: ((data: Buffer) => void)[] = [];
  const receiver = new SrtlaReceiver({
    log: pino({ level: 'silent' }),
    now: () => now,
    open: async (received) => {
      await open();
      answers.push(received);
      const local = { ...LOCAL, port: LOCAL.port + opened++ };
      return { local, send: (data) => void forwarded.push(data.toString('hex')), close: () => {} };
    },
  });
  t.teardown(() => receiver.close());
  const link = (address: string, port = 5000) => {
    const heard: Buffer[] = [];
    const send = (data: Buffer): void =>
      receiver.receive(data, { address, port, local: 5000, send: (answer) => void heard.push(answer) });
    return { send, heard, last: () => heard.at(-1)?.toString('hex') };
  };
  const pass = (ms: number): void => {
    now += ms;
    receiver.sweep();
  };
  return { receiver, forwarded, answers, link, pass };
}

type Link = ReturnType<ReturnType<typeof start>['link']>;

const registration = (type: number, id: Buffer): Buffer => Buffer.concat([Buffer.from([type >> 8, type & 0xff]), id]);
const data = (sequence: number): Buffer => Buffer.concat([words(sequence), Buffer.alloc(188 + 12)]);
const words = (...all: number[]): Buffer =>
  Buffer.concat(all.map((one) => Buffer.from(Uint32Array.of(one).buffer).swap32()));
/** Of the SRT port: a type of SRT control packets, and as many bytes. */
const control = (type: number, bytes = 16): Buffer =>
  Buffer.concat([words((type << 16) >>> 0), Buffer.alloc(bytes - 4)]);

/** Id of a new group. */
function asked(link: Link): Buffer {
  link.send(registration(REG1, Buffer.alloc(256, 7)));
  return (link.heard.at(-1) as Buffer).subarray(2);
}

async function join(link: Link, id = asked(link)): Promise<Buffer> {
  link.send(registration(REG2, id));
  await setImmediate();
  return id;
}

test('a group has the half of the id that its sender chose, and links are told when they are registered', async (t) => {
  const { link, receiver } = start(t);
  const [one, other] = [link('192.0.2.1'), link('192.0.2.2')];
  const id = asked(one);
  t.is(one.heard[0]?.length, 258);
  t.deepEqual(id.subarray(0, 128), Buffer.alloc(128, 7));
  t.notDeepEqual(asked(other), id);
  t.is(receiver.groups, 0, 'a request leaves nothing behind');
  await join(one, id);
  await join(other, id);
  t.is(one.last(), REG3);
  t.is(other.last(), REG3);
  t.is(receiver.groups, 1);
  t.is(receiver.links, 2);
});

test('links are told only when their packets can be passed on', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { link, forwarded } = start(t, () => gate.promise);
  const one = link('192.0.2.1');
  await join(one);
  t.is(one.heard.length, 1);
  one.send(data(1));
  t.deepEqual(forwarded, []);
  gate.resolve();
  await setImmediate();
  t.is(one.last(), REG3);
});

test('a group whose way to the SRT port cannot be opened is none', async (t) => {
  const { link, receiver } = start(t, () => Promise.reject(new Error('too many open files')));
  const one = link('192.0.2.1');
  await join(one);
  t.is(receiver.groups, 0);
  t.is(receiver.links, 0);
});

test('ids of nobody, altered ids and those of groups that are gone begin nothing', async (t) => {
  const { link, receiver, pass } = start(t);
  const [one, other] = [link('192.0.2.1'), link('192.0.2.2')];
  const id = await join(one);
  for (const at of [0, 128, 200, 255]) {
    const altered = Buffer.from(id);
    altered.writeUInt8((altered.readUInt8(at) + 1) % 256, at);
    await join(other, altered);
    t.is(other.last(), NO_GROUP);
  }
  await join(other, Buffer.alloc(256));
  t.is(other.last(), NO_GROUP);
  pass(5000);
  t.is(receiver.links, 0);
  t.is(receiver.groups, 1, 'a rig may lose all its links for some seconds');
  pass(6000);
  t.is(receiver.groups, 0);
  await join(one, id);
  t.is(one.last(), NO_GROUP);
});

test('packets of SRT pass unchanged, and each link acknowledges what it received', async (t) => {
  const { link, forwarded } = start(t);
  const [one, other] = [link('192.0.2.1'), link('192.0.2.2')];
  await join(other, await join(one));
  for (let i = 0; i < 20; i++) (i % 2 === 0 ? one : other).send(data(i));
  t.deepEqual(
    forwarded,
    Array.from({ length: 20 }, (_, i) => data(i).toString('hex')),
  );
  t.deepEqual(one.heard.at(-1), Buffer.concat([words(0x9100_0000), words(0, 2, 4, 6, 8, 10, 12, 14, 16, 18)]));
  t.deepEqual(other.heard.at(-1), Buffer.concat([words(0x9100_0000), words(1, 3, 5, 7, 9, 11, 13, 15, 17, 19)]));
  // a retransmission is a packet like another
  one.send(data(0));
  t.is(forwarded.length, 21);
});

test('keep-alives come back as they are, and what is not registered gets nothing', async (t) => {
  const { link, forwarded } = start(t);
  const [one, stranger] = [link('192.0.2.1'), link('192.0.2.1', 5001)];
  await join(one);
  for (const text of ['9000', '9000c01f0001000000010000']) {
    one.send(Buffer.from(text, 'hex'));
    t.is(one.last(), text);
    stranger.send(Buffer.from(text, 'hex'));
  }
  stranger.send(data(1));
  t.deepEqual(stranger.heard, []);
  t.deepEqual(forwarded, []);
});

test('feedback goes to all links, everything else to the one heard last', async (t) => {
  const { link, answers, pass } = start(t);
  const [one, other] = [link('192.0.2.1'), link('192.0.2.2')];
  await join(other, await join(one));
  one.send(data(1));
  other.send(data(2));
  const from = [one.heard.length, other.heard.length];
  for (const type of [0x8002, 0x8003, 0x8006]) answers[0]?.(control(type));
  t.deepEqual(
    one.heard.slice(from[0]).map((packet) => packet.readUInt16BE(0)),
    [0x8002, 0x8003],
  );
  t.deepEqual(
    other.heard.slice(from[1]).map((packet) => packet.readUInt16BE(0)),
    [0x8002, 0x8003, 0x8006],
  );
  pass(3000);
  one.send(Buffer.from('9000', 'hex'));
  pass(3000);
  answers[0]?.(control(0x8006));
  t.is(one.heard.at(-1)?.readUInt16BE(0), 0x8006, 'that of a link which is gone goes to another');
});

test('no address is sent more than came from there', async (t) => {
  const { link, answers } = start(t);
  const [one, victim] = [link('192.0.2.1'), link('198.51.100.1')];
  await join(victim, await join(one));
  for (let i = 0; i < 1000; i++) answers[0]?.(control(0x8002, 44));
  const sent = victim.heard.reduce((bytes, { length }) => bytes + length, 0);
  t.true(sent <= 258);
});

test('an SRT caller is known by the address of the link that it is heard on', async (t) => {
  const { link, receiver } = start(t);
  const [one, other] = [link('192.0.2.1', 1111), link('2001:db8::1', 2222)];
  await join(other, await join(one));
  t.is(receiver.senderAt(LOCAL), undefined);
  one.send(data(1));
  t.deepEqual(receiver.senderAt(LOCAL), { address: '192.0.2.1', port: 1111 });
  other.send(data(2));
  t.deepEqual(receiver.senderAt(LOCAL), { address: '2001:db8::1', port: 2222 });
  t.is(receiver.senderAt({ ...LOCAL, address: '127.0.0.2' }), undefined);
  t.is(receiver.senderAt({ ...LOCAL, port: LOCAL.port + 1 }), undefined);
  receiver.close();
  t.is(receiver.senderAt(LOCAL), undefined);
});

test('a link of one group is not taken by another', async (t) => {
  const { link, receiver } = start(t);
  const [one, other] = [link('192.0.2.1'), link('192.0.2.2')];
  const id = await join(one);
  await join(other);
  await join(other, id);
  t.is(other.last(), ERROR);
  other.send(registration(REG1, Buffer.alloc(256)));
  t.is(other.last(), ERROR);
  t.is(receiver.groups, 2);
  // a repeated registration, whose answer was lost
  await join(one, id);
  t.is(one.last(), REG3);
  t.is(receiver.links, 2);
});

test('links of a group, links of an address and groups of an address are limited', async (t) => {
  const { link, receiver, pass } = start(t);
  const id = await join(link('192.0.2.1', 1));
  for (let port = 2; port <= 16; port++) await join(link('192.0.2.1', port), id);
  const beyond = link('192.0.2.1', 17);
  await join(beyond, id);
  t.is(beyond.last(), ERROR);
  t.is(receiver.links, 16);
  for (let port = 100; port < 131; port++) await join(link('192.0.2.1', port));
  t.is(receiver.groups, 32);
  const late = link('192.0.2.1', 200);
  late.send(registration(REG1, Buffer.alloc(256)));
  t.is(late.last(), ERROR);
  await join(link('192.0.2.9'));
  t.is(receiver.groups, 33, 'others are not concerned');
  pass(11_000);
  t.is(receiver.groups + receiver.links, 0);
  await join(late);
  t.is(late.last(), REG3);
});

test('random packets of members and strangers throw nothing', async (t) => {
  const { link } = start(t);
  const [one, stranger] = [link('192.0.2.1'), link('192.0.2.2')];
  await join(one);
  const chance = seeded(11);
  for (let i = 0; i < 5000; i++) {
    const packet = Buffer.from(Array.from({ length: Math.floor(chance() * 300) }, () => Math.floor(chance() * 256)));
    if (packet.length > 1 && chance() < 0.5) packet.writeUInt16BE(0x9000 | Math.floor(chance() * 0x300));
    t.notThrows(() => (i % 2 === 0 ? one : stranger).send(packet));
  }
});
