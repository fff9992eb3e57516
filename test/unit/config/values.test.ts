import test from 'ava';
import * as values from '../../../src/config/values.ts';

test('ports are read', (t) => {
  t.is(values.parsePort('1'), 1);
  t.is(values.parsePort('65535'), 65535);
  for (const bad of ['', '0', '65536', '-1', '1.5', '0x10', ' 1', '99999999999']) {
    t.is(values.parsePort(bad), undefined, bad);
  }
  t.is(values.parsePortOf('1935/TCP', 'tcp'), 1935);
  t.is(values.parsePortOf('1935/udp', 'tcp'), undefined);
  t.is(values.parsePortOf('1935/tcp/tcp', 'tcp'), undefined);
});

test('ranges of ports are read', (t) => {
  const range = (first: number, last = first) => ({ first, last });
  t.deepEqual(values.parsePortRanges('4000-4003,4005/udp', 'udp'), [range(4000, 4003), range(4005)]);
  t.deepEqual(values.parsePortRanges('4000/udp, 4002/udp', 'udp'), [range(4000), range(4002)]);
  for (const bad of ['', ',', '4000,', '1-2-3', '5-4', '4000/tcp']) t.is(values.parsePortRanges(bad, 'udp'), undefined);
});

test('ICE candidates are read', (t) => {
  const good: [text: string, address: string, first: number, last: number, protocol: 'udp' | 'tcp'][] = [
    ['*:10000-10004/udp', '*', 10000, 10004, 'udp'],
    ['1.2.3.4:3478/TCP', '1.2.3.4', 3478, 3478, 'tcp'],
    ['[2001:db8::1]:1/udp', '2001:db8::1', 1, 1, 'udp'],
  ];
  for (const [text, address, first, last, protocol] of good) {
    t.deepEqual(values.parseIceCandidate(text), { address, first, last, protocol });
  }
  const wrong = ['*', '*:1', '*:1/sctp', 'host.example:1/udp', '[1.2.3.4]:1/udp', '::1:1/udp', '*:2-1/udp'];
  for (const bad of ['', '*:1/udp/udp', ...wrong]) {
    t.is(values.parseIceCandidate(bad), undefined, bad);
  }
});

test('endpoints are read', (t) => {
  t.deepEqual(values.parseEndpoint('stun.example.com:3478'), { host: 'stun.example.com', port: 3478 });
  t.deepEqual(values.parseEndpoint('*:3478'), { host: '*', port: 3478 });
  t.deepEqual(values.parseEndpoint('[::1]:80'), { host: '::1', port: 80 });
  for (const bad of ['', 'host', 'host:', ':1', 'a b:1', 'host:0', '::1:80']) {
    t.is(values.parseEndpoint(bad), undefined, bad);
  }
});

test('networks are read', (t) => {
  t.deepEqual(values.parseNetworks('10.0.0.0/8, 192.0.2.1,2001:db8::/32'), [
    { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
    { address: '192.0.2.1', prefix: 32, family: 'ipv4' },
    { address: '2001:db8::', prefix: 32, family: 'ipv6' },
  ]);
  for (const bad of ['', '10.0.0.0/33', '10.0.0/8', '::/129', '10.0.0.0/', '10.0.0.0/8,', 'host/8', '10.0.0.0/8/8']) {
    t.is(values.parseNetworks(bad), undefined, bad);
  }
});

test('bitrates are read', (t) => {
  t.is(values.parseBitrate(128000), 128000);
  t.is(values.parseBitrate('128000'), 128000);
  t.is(values.parseBitrate('128K'), 131072);
  t.is(values.parseBitrate('2m'), 2097152);
  t.is(values.parseBitrate('1.5M'), 1572864);
  for (const bad of [0, -1, NaN, '', 'K', '1G', '1KM', '0M', true, null, ['1'], 1e30]) {
    t.is(values.parseBitrate(bad), undefined, String(bad));
  }
});

test('URLs and listen addresses', (t) => {
  t.is(values.parseUrl('https://a/b', ['http', 'https']), 'https://a/b');
  t.is(values.parseUrl('ftp://a/b', ['http', 'https']), undefined);
  t.is(values.parseUrl('a/b', ['http']), undefined);
  for (const good of ['*', '::', '0.0.0.0', '192.0.2.1', '2001:db8::1']) t.is(values.parseListenAddress(good), good);
  t.is(values.parseListenAddress('localhost'), undefined);
});
