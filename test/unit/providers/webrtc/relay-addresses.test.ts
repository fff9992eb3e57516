import { networkInterfaces } from 'node:os';
import test from 'ava';
import { pino } from 'pino';
import type { WebrtcBindConfig } from '../../../../src/config/model.ts';
import { RelayAddresses } from '../../../../src/providers/webrtc/relay-addresses.ts';
import { until } from '../../../support/time/until.ts';

function bindOf(hosts: readonly string[], urls: readonly string[]): WebrtcBindConfig {
  return {
    iceCandidates: { tcpRelay: hosts.map((host) => ({ host, port: 3478 })) },
    iceServers: [{ urls }],
  } as unknown as WebrtcBindConfig;
}

test('a relay is known by its addresses, in any form, and by its name', async (t) => {
  const warnings: string[] = [];
  const log = pino({}, { write: (line: string) => void warnings.push(line) });
  const relays = new RelayAddresses(
    bindOf(
      ['198.51.100.1'],
      [
        'turn:198.51.100.2:3478?transport=tcp',
        'turns:[2001:db8::1]',
        'stun:198.51.100.3',
        'turn:localhost',
        'turn:name.invalid',
      ],
    ),
    log,
  );
  await until('names are looked up', () => relays.has('127.0.0.1') && warnings.length > 0);
  for (const address of ['198.51.100.1', '::ffff:198.51.100.1', '198.51.100.2', '2001:db8::1', '2001:DB8:0::1'])
    t.true(relays.has(address), address);
  for (const address of ['198.51.100.3', '198.51.100.4', '2001:db8::2']) t.false(relays.has(address), address);
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /name\.invalid/);
});

test('`*` is this machine, as others call it', (t) => {
  const relays = new RelayAddresses(bindOf(['*'], []), pino({ level: 'silent' }));
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  t.true(own.length > 0);
  for (const { address, internal } of own) t.is(relays.has(address), !internal, address);
  t.false(relays.has('198.51.100.1'));
});
