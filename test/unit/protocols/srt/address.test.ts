import test from 'ava';
import { SrtError } from '../../../../src/protocols/srt/error.ts';
import { readAddress, writeAddress } from '../../../../src/protocols/srt/address.ts';

test('socket addresses are those of Linux, both ways', (t) => {
  const both: [host: string, port: number, hex: string][] = [
    ['192.0.2.1', 9999, '0200270fc00002010000000000000000'],
    ['0.0.0.0', 1, '02000001000000000000000000000000'],
    ['2001:db8::1:0:0:1', 65_535, '0a00ffff0000000020010db800000000000100000000000100000000'],
    ['::', 0, '0a00000000000000' + '00'.repeat(20)],
    ['::1', 9999, '0a00270f00000000' + '00'.repeat(15) + '0100000000'],
  ];
  for (const [address, port, hex] of both) {
    t.is(writeAddress(address, port).toString('hex'), hex, address);
    t.deepEqual(readAddress(Buffer.from(hex, 'hex')), { address, port });
  }
  t.deepEqual(writeAddress('*', 5), writeAddress('0.0.0.0', 5));
  t.deepEqual(readAddress(writeAddress('::ffff:192.0.2.1', 7)), { address: '192.0.2.1', port: 7 });
});

test('text that is no IP address is rejected', (t) => {
  t.throws(() => writeAddress('localhost', 1), { instanceOf: SrtError, message: '"localhost" is not an IP address' });
  t.is(readAddress(Buffer.alloc(16)), undefined);
  t.is(readAddress(Buffer.from('0a00270f0000000000000000', 'hex')), undefined);
  t.is(readAddress(Buffer.alloc(0)), undefined);
});
