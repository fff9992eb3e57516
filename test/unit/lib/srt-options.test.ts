import test from 'ava';
import { readSrtOption } from '../../../src/lib/srt-options.ts';

const read = (key: string, value: string): unknown => {
  const option = readSrtOption(key, value);
  return 'at' in option ? option.at : option.value;
};

test('values are read by the kind of their option', (t) => {
  t.is(read('SRTO_LATENCY', ' 250 '), 250);
  t.is(read('SRTO_MAXBW', '-1'), -1n);
  t.is(read('SRTO_MAXBW', '12500000000'), 12_500_000_000n);
  t.is(read('SRTO_TLPKTDROP', 'False'), false);
  t.is(read('SRTO_TLPKTDROP', '1'), true);
  t.is(read('SRTO_PASSPHRASE', 'ten letters'), 'ten letters');
  t.is(read('SRTO_PACKETFILTER', 'fec,cols:10'), 'fec,cols:10');
});

test('an SRT option with a value of another kind, or outside its range, is rejected', (t) => {
  for (const [key, value] of [
    ['SRTO_LATENCY', '-1'],
    ['SRTO_LATENCY', '1.5'],
    ['SRTO_LATENCY', '2147483648'],
    ['SRTO_LATENCY', ''],
    ['SRTO_MAXBW', '-2'],
    ['SRTO_MAXBW', '9999999999999999999'],
    ['SRTO_TLPKTDROP', 'yes'],
    ['SRTO_IPTTL', '0'],
    ['SRTO_PAYLOADSIZE', '187'],
    ['SRTO_PAYLOADSIZE', '1457'],
    ['SRTO_PASSPHRASE', 'x'.repeat(80)],
    ['SRTO_PBKEYLEN', '8'],
  ] as const)
    t.is(read(key, value), 'value', `${key}=${value}`);
  for (const key of ['SRTO_STREAMID', 'SRTO_TRANSTYPE', 'srto_latency', 'LATENCY', 'constructor', ''])
    t.is(read(key, '1'), 'key', key);
});

test('a passphrase is in no message', (t) => {
  const problem = readSrtOption('SRTO_PASSPHRASE', 'secret');
  t.true('message' in problem && !problem.message.includes('secret'));
});
