import test from 'ava';
import { KilnError } from '../../../src/errors.ts';
import { connectTimeout, PendingPeers } from '../../../src/webrtc/pending-peers.ts';

const refused = { instanceOf: KilnError, code: 'mediaUnavailable' };

function fill(peers: PendingPeers, addresses: readonly string[], each = 256): (() => void)[] {
  return addresses.flatMap((address) => Array.from({ length: each }, () => peers.add(address)));
}

test('one client has a limited number of pending peers, and as many again when they are settled', (t) => {
  const peers = new PendingPeers();
  const settled = fill(peers, ['192.0.2.1']);
  t.throws(() => peers.add('192.0.2.1'), refused);
  t.throws(() => peers.add('::ffff:192.0.2.1'), refused);
  settled[0]?.();
  settled[0]?.();
  peers.add('192.0.2.1');
  t.throws(() => peers.add('192.0.2.1'), refused);
});

test('a network of IPv6 is one client', (t) => {
  const peers = new PendingPeers();
  for (let i = 0; i < 256; i++) peers.add(`2001:db8:1:2::${i.toString(16)}`);
  t.throws(() => peers.add('2001:db8:1:2:ffff::1'), refused);
  t.notThrows(() => peers.add('2001:db8:1:3::1'));
});

test('clients with many pending peers do not keep others out', (t) => {
  const peers = new PendingPeers();
  fill(peers, ['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  fill(peers, ['192.0.2.4'], 232);
  t.throws(() => peers.add('192.0.2.4'), refused);
  t.notThrows(() => fill(peers, ['192.0.2.5'], 4));
  t.throws(() => peers.add('192.0.2.5'), refused);
  for (let i = 0; i < 996; i++) peers.add(`10.0.${i >> 8}.${i & 255}`);
  t.throws(() => peers.add('192.0.2.6'), refused);
});

test('connecting takes no longer than the time after which a peer is given up', (t) => {
  t.is(connectTimeout(1000), 1000);
  t.is(connectTimeout(30_000), 10_000);
});
