import test from 'ava';
import { parseProxyHeader, ProxyProtocolError, type ProxyHeader } from '../../../src/protocols/proxy-protocol.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';

const V2_TCP4 = hex(SIGNATURE, '21', '11', '000c', 'cb007107', 'c0000201', 'd903', '0050');
const V2_TCP6 = hex(
  SIGNATURE,
  '21',
  '21',
  '0024',
  '20010db8000000000000000000000001',
  '20010db8000000000000000000000002',
  'd903',
  '0050',
);

const vectors: Record<string, { bytes: Buffer; header: ProxyHeader }> = {
  'version 1, IPv4': {
    bytes: Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 55555 80\r\n'),
    header: { peer: peer('203.0.113.7', 55_555, '192.0.2.1', 80), consumed: 43 },
  },
  'version 1, IPv6': {
    bytes: Buffer.from('PROXY TCP6 2001:db8::1 2001:db8:0:0:0:0:0:2 55555 80\r\n'),
    header: { peer: peer('2001:db8::1', 55_555, '2001:db8::2', 80), consumed: 54 },
  },
  'version 1, IPv4 in IPv6 notation': {
    bytes: Buffer.from('PROXY TCP6 ::ffff:203.0.113.7 ::ffff:c000:201 1 2\r\n'),
    header: { peer: peer('203.0.113.7', 1, '192.0.2.1', 2), consumed: 51 },
  },
  'version 1, longest': {
    bytes: Buffer.from(`PROXY UNKNOWN ${`${'ffff:'.repeat(7)}ffff `.repeat(2)}65535 65535\r\n`),
    header: { peer: undefined, consumed: 107 },
  },
  'version 1, unknown': { bytes: Buffer.from('PROXY UNKNOWN\r\n'), header: { peer: undefined, consumed: 15 } },
  'version 2, IPv4': { bytes: V2_TCP4, header: { peer: peer('203.0.113.7', 55_555, '192.0.2.1', 80), consumed: 28 } },
  'version 2, IPv6': { bytes: V2_TCP6, header: { peer: peer('2001:db8::1', 55_555, '2001:db8::2', 80), consumed: 52 } },
  'version 2, IPv4 with extensions': {
    bytes: hex(SIGNATURE, '21', '11', '0013', 'cb007107', 'c0000201', 'd903', '0050', '04', '0004', 'deadbeef'),
    header: { peer: peer('203.0.113.7', 55_555, '192.0.2.1', 80), consumed: 35 },
  },
  'version 2, local': {
    bytes: hex(SIGNATURE, '20', '11', '000c', '00'.repeat(12)),
    header: { peer: undefined, consumed: 28 },
  },
  'version 2, local without addresses': {
    bytes: hex(SIGNATURE, '20', '00', '0000'),
    header: { peer: undefined, consumed: 16 },
  },
  'version 2, unspecified': {
    bytes: hex(SIGNATURE, '21', '00', '0002', 'ffff'),
    header: { peer: undefined, consumed: 18 },
  },
  'version 2, unix socket': {
    bytes: hex(SIGNATURE, '21', '31', '00d8', '61'.repeat(216)),
    header: { peer: undefined, consumed: 232 },
  },
};

for (const [name, { bytes, header }] of Object.entries(vectors)) {
  test(`${name}: read whole, with and without bytes behind`, (t) => {
    t.deepEqual(parseProxyHeader(bytes), header);
    t.deepEqual(parseProxyHeader(Buffer.concat([bytes, Buffer.from('GET / HTTP/1.1\r\n\r\n')])), header);
  });

  test(`${name}: more is asked for at every cut`, (t) => {
    for (let length = 0; length < bytes.length; length++) {
      t.is(parseProxyHeader(bytes.subarray(0, length)), undefined, `${length} bytes`);
    }
  });
}

const malformed: Record<string, Buffer> = {
  'no header': Buffer.from('GET / HTTP/1.1\r\n'),
  'a first byte of something else': Buffer.from([3]),
  'a signature with one wrong byte': hex('0d0a0d0a000d0a515549540b'),
  'version 1 in lower case': Buffer.from('proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n'),
  'version 1 of another family': Buffer.from('PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n'),
  'version 1 with an address of the other family': Buffer.from('PROXY TCP4 ::1 ::1 1 1\r\n'),
  'version 1 with a host name': Buffer.from('PROXY TCP4 localhost 1.2.3.4 1 1\r\n'),
  'version 1 with a missing port': Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n'),
  'version 1 with too large a port': Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n'),
  'version 1 with a signed port': Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n'),
  'version 1 with a port that leads with zero': Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n'),
  'version 1 with a word too many': Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n'),
  'version 1 with two spaces': Buffer.from('PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n'),
  'version 1 without end': Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}`),
  'version 1 that ends too late': Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}\r\n`),
  'version 2 of another version': hex(SIGNATURE, '11', '11', '000c'),
  'version 2 with another command': hex(SIGNATURE, '22', '11', '000c'),
  'version 2 of another address family': hex(SIGNATURE, '21', '41', '000c'),
  'version 2 of another transport': hex(SIGNATURE, '21', '13', '000c'),
  'version 2 too short for IPv4': hex(SIGNATURE, '21', '11', '000b'),
  'version 2 too short for IPv6': hex(SIGNATURE, '21', '21', '0023'),
  'version 2 with more than 4096 bytes': hex(SIGNATURE, '21', '11', '0ff1'),
};

for (const [name, bytes] of Object.entries(malformed)) {
  test(`a PROXY header is rejected: ${name}`, (t) => {
    t.throws(() => parseProxyHeader(bytes), { instanceOf: ProxyProtocolError });
  });
}

test('random bytes are refused or asked on for, never read beyond their end', (t) => {
  let seed = 1;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647);
  for (let round = 0; round < 5000; round++) {
    const bytes = Buffer.concat([V2_TCP6, Buffer.alloc(8)]);
    for (let i = 0; i < 3; i++) bytes[random() % bytes.length] = random() & 0xff;
    const cut = bytes.subarray(0, random() % (bytes.length + 1));
    try {
      const header = parseProxyHeader(cut);
      t.true(header === undefined || header.consumed <= cut.length);
    } catch (error) {
      t.true(error instanceof ProxyProtocolError);
    }
  }
});

function peer(remoteAddress: string, remotePort: number, localAddress: string, localPort: number): ProxyHeader['peer'] {
  return { remoteAddress, remotePort, localAddress, localPort };
}

function hex(...parts: string[]): Buffer {
  return Buffer.from(parts.join(''), 'hex');
}
