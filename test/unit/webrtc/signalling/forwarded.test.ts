import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import test from 'ava';
import { forwarded } from '../../../../src/webrtc/signalling/forwarded.ts';

const proxies = new BlockList();
proxies.addSubnet('10.0.0.0', 8);

function from(remoteAddress: string, forwarded?: string): IncomingMessage {
  return {
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
}

test('the client is the nearest that no proxy of ours is', (t) => {
  t.is(forwarded(from('10.0.0.1', '198.51.100.7'), proxies).ip, '198.51.100.7');
  t.is(forwarded(from('10.0.0.1', '192.0.2.1, 198.51.100.7,10.0.0.2'), proxies).ip, '198.51.100.7');
  t.is(forwarded(from('10.0.0.1', '2001:db8::1'), proxies).ip, '2001:db8::1');
  t.is(forwarded(from('10.0.0.1'), proxies).ip, '10.0.0.1');
});

test('forwarded addresses are believed from proxies only, and only if they are addresses', (t) => {
  t.is(forwarded(from('203.0.113.5', '198.51.100.7'), proxies).ip, '203.0.113.5');
  t.is(forwarded(from('10.0.0.1', '198.51.100.7'), undefined).ip, '10.0.0.1');
  t.is(forwarded(from('10.0.0.1', 'unknown'), proxies).ip, '10.0.0.1');
  t.is(forwarded(from('10.0.0.1', '198.51.100.7, "x'), proxies).ip, '10.0.0.1');
});
