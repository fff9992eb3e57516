import test from 'ava';
import { isSamePort, overlap, parseUdpPorts, udpUrl } from '../../../src/config/udp-ports.ts';

test('ports of the server and of groups', (t) => {
  t.deepEqual(parseUdpPorts('4000-4003, 4005/udp,239.1.2.3:5000,[FF15::7]:5000-5001/udp'), [
    { first: 4000, last: 4003 },
    { first: 4005, last: 4005 },
    { group: '239.1.2.3', first: 5000, last: 5000 },
    { group: 'ff15::7', first: 5000, last: 5001 },
  ]);
});

test('text that is neither a port nor a multicast group is rejected', (t) => {
  for (const text of [
    '',
    '4000/tcp',
    '0',
    '10.0.0.1:4000',
    '239.1.2.3',
    'ff15::7:4000',
    '[239.1.2.3]:4000',
    '[::1]:4000',
    ':4000',
    '240.0.0.1:4000',
    'host:4000',
    '239.1.2.3:',
  ]) {
    t.is(parseUdpPorts(text), undefined, text);
  }
});

test('ranges of UDP ports are compared, checked for overlaps and written as URLs', (t) => {
  const server = { first: 4000, last: 4003 };
  const group = { group: '239.1.2.3', first: 4003, last: 4005 };
  const other = { group: '239.1.2.4', first: 4003, last: 4003 };
  t.deepEqual(
    [
      isSamePort(server, { first: 4003, last: 4003 }),
      isSamePort(server, group),
      isSamePort(group, other),
      isSamePort(group, { ...other, group: group.group }),
    ],
    [true, false, false, true],
  );
  t.deepEqual(
    [overlap(server, group), overlap(group, other), overlap(server, { first: 4004, last: 4004 })],
    [true, false, false],
  );
  t.deepEqual(
    [udpUrl(server, '127.0.0.1'), udpUrl(group, 'x'), udpUrl({ group: 'ff15::7', first: 1, last: 1 }, 'x')],
    ['udp://127.0.0.1:4000-4003', 'udp://239.1.2.3:4003-4005', 'udp://[ff15::7]:1'],
  );
});
