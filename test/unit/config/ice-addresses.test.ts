import test from 'ava';
import { manyIceAddresses } from '../../../src/config/ice-addresses.ts';
import { load, serverXml } from './support.ts';

const addresses = (family: 'IPv4' | 'IPv6', ...list: readonly string[]) =>
  list.map((address) => ({ address, family, internal: false }));
const BRIDGES = Array.from({ length: 4 }, (_, i) => `172.${17 + i}.0.1`);
const MACHINE = [
  { address: '127.0.0.1', family: 'IPv4' as const, internal: true },
  ...addresses('IPv4', '203.0.113.5', ...BRIDGES, '169.254.0.1'),
  ...addresses('IPv6', '2001:db8::5', 'fe80::1', 'fe80::2', 'fe80::3', 'fe80::4'),
];

test('candidates of every address are warned of where there are many', async (t) => {
  const warnings = async (candidates: string, locals = MACHINE) => {
    const webrtc = `<WebRTC><Signalling><Port>3333</Port></Signalling><IceCandidates>${candidates}</IceCandidates></WebRTC>`;
    const { config } = await load(t, serverXml({ bind: `<Publishers>${webrtc}</Publishers>` }));
    return manyIceAddresses(config, locals);
  };
  const [all, ...more] = await warnings(
    '<IceCandidate>*:10000/udp</IceCandidate><IceCandidate>*:10000/tcp</IceCandidate>',
  );
  t.is(all?.path.join('/'), 'bind/publishers/webrtc/iceCandidates/iceCandidate');
  t.regex(all?.message ?? '', /^\* offers every client 5 addresses of this machine \(203\.0\.113\.5, 172\.17/);
  t.deepEqual(more, [], 'once for both protocols');
  t.is((await warnings('')).length, 1, 'the default');
  t.is((await warnings('<IceCandidate>0.0.0.0:10000/udp</IceCandidate>')).length, 1);
  t.deepEqual(await warnings('<IceCandidate>203.0.113.5:10000/udp</IceCandidate>'), []);
  t.deepEqual(await warnings('', addresses('IPv4', '203.0.113.5', ...BRIDGES.slice(1))), [], 'four are not many');
  const six = '<IceCandidate>[::]:10000/udp</IceCandidate>';
  t.deepEqual(await warnings(six), [], 'link-local ones are not offered');
  t.is((await warnings(`${six}<EnableLinkLocalAddress>true</EnableLinkLocalAddress>`)).length, 1);
});
