import test from 'ava';
import type { IceCandidate } from '../../../src/config/values.ts';
import { iceSockets, workerCount, type LocalAddress } from '../../../src/webrtc/addresses.ts';
import { candidateLine, hostCandidates } from '../../../src/webrtc/candidate.ts';

const LOCALS: LocalAddress[] = [
  { address: '127.0.0.1', internal: true },
  { address: '::1', internal: true },
  { address: '10.0.0.5', internal: false },
  { address: '192.168.1.7', internal: false },
  { address: '169.254.3.3', internal: false },
  { address: '2001:db8::5', internal: false },
  { address: 'fe80::5', internal: false },
];

function entry(address: string, first: number, last = first, protocol: 'udp' | 'tcp' = 'udp'): IceCandidate {
  return { address, first, last, protocol };
}

const sockets = (candidates: IceCandidate[], index = 0, locals = LOCALS, linkLocal = false) =>
  iceSockets(candidates, index, locals, linkLocal).map(({ protocol, ip, port, announced }) => {
    return `${protocol} ${ip}:${port} ${announced.join(',')}`;
  });

test('* is every local IPv4 address but loopback and link-local', (t) => {
  t.deepEqual(sockets([entry('*', 10000)]), ['udp 10.0.0.5:10000 10.0.0.5', 'udp 192.168.1.7:10000 192.168.1.7']);
  t.is(sockets([entry('*', 10000)], 0, LOCALS, true).length, 3);
  t.deepEqual(sockets([entry('*', 1)], 0, LOCALS.slice(0, 2)), ['udp 127.0.0.1:1 127.0.0.1']);
  t.deepEqual(sockets([entry('::', 1)]), ['udp 2001:db8::5:1 2001:db8::5']);
});

test('each worker takes its own port of a range, as far as there is one', (t) => {
  const candidates = [entry('10.0.0.5', 10000, 10004), entry('10.0.0.5', 3478, 3478, 'tcp')];
  t.deepEqual(sockets(candidates, 0), ['udp 10.0.0.5:10000 10.0.0.5', 'tcp 10.0.0.5:3478 10.0.0.5']);
  t.deepEqual(sockets(candidates, 4), ['udp 10.0.0.5:10004 10.0.0.5']);
});

test('an address of a NAT is announced for a socket that its packets reach', (t) => {
  t.deepEqual(sockets([entry('203.0.113.9', 10000)]), ['udp 0.0.0.0:10000 203.0.113.9']);
  t.deepEqual(sockets([entry('203.0.113.9', 1), entry('203.0.113.10', 1)]), ['udp 0.0.0.0:1 203.0.113.9,203.0.113.10']);
  t.deepEqual(sockets([entry('203.0.113.9', 1), entry('*', 1)]), [
    'udp 10.0.0.5:1 10.0.0.5,203.0.113.9',
    'udp 192.168.1.7:1 192.168.1.7',
  ]);
});

test('workers are as many as ports and cores', (t) => {
  t.is(workerCount([entry('*', 10000, 10004)], 2), 2);
  t.is(workerCount([entry('*', 10000, 10001)], 8), 2);
  t.is(workerCount([entry('*', 10000)], 8), 1);
  t.is(workerCount([entry('*', 10000, 10003), entry('*', 3478, 3478, 'tcp')], 8), 4);
  t.is(workerCount([entry('*', 3478, 3479, 'tcp')], 8), 2);
  t.is(workerCount([entry('*', 0, 0)], 3), 3);
  t.is(workerCount([], 3), 3);
});

test('candidates say where to send, UDP before TCP', (t) => {
  const candidates = hostCandidates(
    iceSockets([entry('10.0.0.5', 3478, 3478, 'tcp'), entry('10.0.0.5', 10000)], 0, LOCALS, false),
  );
  t.deepEqual(candidates.map(candidateLine), [
    'candidate:1 1 TCP 1520435199 10.0.0.5 3478 typ host tcptype passive',
    'candidate:2 1 UDP 2130706175 10.0.0.5 10000 typ host',
  ]);
});
