import test from 'ava';
import { isStun, readStun, writeStun, type StunMessage } from '../../../../src/protocols/stun/message.ts';
import { seeded } from '../../codecs/vectors.ts';

const PASSWORD = 'VOkJxbRl1RmTxUk/WvJxBt';
const TRANSACTION = 'b7e7a701bc34d686fa87dfae';
/** RFC 5769 sections 2.1 to 2.3. */
const REQUEST = bytes(
  `0001 0058 2112a442 ${TRANSACTION} 8022 0010 5354554e20746573 7420636c69656e74 0024 0004 6e0001ff`,
  '8029 0008 932ff9b151263b36 0006 0009 6576746a3a683676 59202020',
  '0008 0014 9aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2 8028 0004 e57a3bcf',
);
const IPV4 = bytes(
  `0101 003c 2112a442 ${TRANSACTION} 8022 000b 7465737420766563 746f7220 0020 0008 0001a147e112a643`,
  '0008 0014 2b91f599fd9e90c38c7489f92af9ba53f06be7d7 8028 0004 c07d4c96',
);
const IPV6 = bytes(
  `0101 0048 2112a442 ${TRANSACTION} 8022 000b 7465737420766563 746f7220`,
  '0020 0014 0002a1470113a9faa5d3f179bc25f4b5bed2b9d9',
  '0008 0014 a382954e4be67bf11784c97c8292c275bfe3ed41 8028 0004 c8fb0b4c',
);

function bytes(...hex: string[]): Buffer {
  return Buffer.from(hex.join('').replaceAll(' ', ''), 'hex');
}

test('the messages of RFC 5769 are read', (t) => {
  const transaction = bytes(TRANSACTION);
  t.deepEqual(readStun(REQUEST, PASSWORD), {
    kind: 'request',
    transaction,
    priority: 0x6e0001ff,
    username: 'evtj:h6vY',
  });
  t.deepEqual(readStun(IPV4, PASSWORD)?.mapped, { address: '192.0.2.1', port: 32_853 });
  t.deepEqual(readStun(IPV6, PASSWORD)?.mapped, {
    address: '2001:db8:1234:5678:11:2233:4455:6677',
    port: 32_853,
  });
  for (const message of [REQUEST, IPV4, IPV6]) {
    t.is(readStun(message, 'another'), undefined);
    t.is(readStun(message)?.kind, message === REQUEST ? 'request' : 'success');
  }
});

const messages: readonly StunMessage[] = [
  {
    kind: 'request',
    transaction: bytes(TRANSACTION),
    username: 'a:b',
    priority: 1,
    controlling: 2n ** 64n - 1n,
    nominates: true,
  },
  { kind: 'indication', transaction: bytes(TRANSACTION) },
  { kind: 'error', transaction: bytes(TRANSACTION), error: 487 },
  ...['192.0.2.1', '2001:db8::1', '::1', 'fe80::1234:0:0:1'].map((address): StunMessage => {
    return { kind: 'success', transaction: bytes(TRANSACTION), mapped: { address, port: 9 } };
  }),
];

test('what is written is read', (t) => {
  for (const message of messages) t.deepEqual(readStun(writeStun(message, 'secret'), 'secret'), message);
});

test('damaged and cut messages are none', (t) => {
  const random = seeded(7);
  for (const message of [REQUEST, IPV4, IPV6, ...messages.map((one) => writeStun(one, PASSWORD))]) {
    for (let length = 0; length < message.length; length++)
      t.is(readStun(message.subarray(0, length), PASSWORD), undefined);
    for (let round = 0; round < 50; round++) {
      const damaged = Buffer.from(message);
      const at = Math.floor(random() * damaged.length);
      // without its name, the fingerprint at the end is an attribute that nobody knows
      if (at === damaged.length - 8 || at === damaged.length - 7) continue;
      damaged[at] = (damaged[at] as number) ^ (1 + Math.floor(random() * 255));
      t.is(readStun(damaged, PASSWORD), undefined, `${at}`);
    }
  }
});

test('random datagrams are read or left, and never more', (t) => {
  const random = seeded(11);
  for (let round = 0; round < 2000; round++) {
    const datagram = Buffer.from(Array.from({ length: Math.floor(random() * 80) }, () => Math.floor(random() * 256)));
    REQUEST.copy(datagram, 0, 0, Math.min(8, datagram.length));
    if (datagram.length >= 20) datagram.writeUInt16BE(datagram.length - 20, 2);
    t.notThrows(() => readStun(datagram));
  }
});

test('DTLS and RTP are told apart from it', (t) => {
  t.true(isStun(REQUEST));
  for (const first of [20, 63, 128, 191]) t.false(isStun(Buffer.concat([Buffer.from([first]), REQUEST.subarray(1)])));
  t.false(isStun(Buffer.alloc(0)));
  t.false(isStun(Buffer.alloc(20)));
});
