import dns from 'node:dns';
import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { createServer, isIP, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { connectionOf, dial } from '../../../../src/protocols/outbound/dial.ts';
import { OutboundGuard } from '../../../../src/protocols/outbound/guard.ts';
import { PULLING } from '../../../support/pushing/outbound.ts';
import { until } from '../../../support/time/until.ts';

const plain = { lookup: dns.lookup, promised: dns.promises.lookup };

type Lookup = () => Promise<{ address: string; family: number }[]>;

/** Replaces how names are resolved until the test ends. */
function replaceLookup(t: ExecutionContext, promised: Lookup, lookup: object = plain.lookup): void {
  const replace = (one: object, other: object): void => {
    Object.assign(dns.promises, { lookup: one });
    Object.assign(dns, { lookup: other });
    syncBuiltinESMExports();
  };
  replace(promised, lookup);
  t.teardown(() => replace(plain.promised, plain.lookup));
}

/** Who owns the name answers these, one for each question, and the last of them for ever. */
function answer(t: ExecutionContext, ...answers: string[][]): { asked: number } {
  const count = { asked: 0 };
  const lookup = async () =>
    (answers[Math.min(count.asked++, answers.length - 1)] as string[]).map((address) => ({ address, family: 4 }));
  replaceLookup(t, lookup, (host: string, ...rest: [never, never]) => {
    if (isIP(host) === 0) throw new Error('a name was resolved where it is not checked');
    plain.lookup(host, ...rest);
  });
  return count;
}

function guardOf(...ports: number[]): OutboundGuard {
  return new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(ports), udp: new Set() },
    stores: () => [],
  });
}

async function listening(host: string): Promise<{ port: number; close: () => void; accepted: () => number }> {
  let accepted = 0;
  const server = createServer((socket) => {
    accepted++;
    socket.on('error', () => {}).resume();
  }).listen(0, host);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close(), accepted: () => accepted };
}

test.serial('a name that changes its mind is connected to where it was checked', async (t) => {
  const origin = await listening('127.0.0.3');
  t.teardown(origin.close);
  const count = answer(t, ['127.0.0.3'], ['169.254.169.254']);
  const socket = await dial(guardOf(), 'rebinds.example', origin.port);
  t.teardown(() => socket.destroy());
  t.is(socket.remoteAddress, '127.0.0.3');
  t.is(count.asked, 1);
  t.like(connectionOf(socket), {
    transport: 'TCP',
    protocol: 'TCP',
    remoteAddress: '127.0.0.3',
    remotePort: origin.port,
  });
});

test.serial('only the allowed ones of several addresses are tried, in turn', async (t) => {
  const origin = await listening('127.0.0.3');
  t.teardown(origin.close);
  answer(t, ['169.254.169.254', '127.0.0.2', '127.0.0.3']);
  const socket = await dial(guardOf(), 'several.example', origin.port);
  t.teardown(() => socket.destroy());
  t.is(socket.remoteAddress, '127.0.0.3');
});

test.serial('no connection is made to an address out of bounds', async (t) => {
  const own = await listening('127.0.0.1');
  t.teardown(own.close);
  answer(t, ['127.0.0.1']);
  await t.throwsAsync(dial(guardOf(own.port), 'own.example', own.port), {
    message: /the port belongs to this server or its cluster/,
  });
  t.is(own.accepted(), 0);
  await t.throwsAsync(dial(guardOf(), 'own.example', 1), {
    name: 'PullError',
    message: '127.0.0.1:1 refused the connection',
  });
});

test.serial('a name that is resolved after the end of an attempt is not connected to', async (t) => {
  const origin = await listening('127.0.0.3');
  t.teardown(origin.close);
  const found = Promise.withResolvers<{ address: string; family: number }[]>();
  replaceLookup(t, () => found.promise);
  const [guard, stop] = [guardOf(), new AbortController()];
  const [ended, goesOn] = [dial(guard, 'slow.example', origin.port, stop), dial(guard, 'slow.example', origin.port)];
  stop.abort();
  await t.throwsAsync(ended, { name: 'PullError', message: 'the connection is not wanted any more' });
  found.resolve([{ address: '127.0.0.3', family: 4 }]);
  (await goesOn).destroy();
  await until('it is accepted', () => origin.accepted() > 0);
  t.is(origin.accepted(), 1);
});

test.serial('a name that is slow to resolve is asked for once at a time', async (t) => {
  const waiting: (() => void)[] = [];
  let asked = 0;
  const lookup: Lookup = () => {
    asked += 1;
    return new Promise((resolve) => waiting.push(() => resolve([{ address: '192.0.2.1', family: 4 }])));
  };
  replaceLookup(t, lookup);
  const guard = guardOf();
  const answers = [guard.addresses('slow.example', 1935), guard.addresses('slow.example', 1936)];
  t.is(asked, 1);
  waiting.shift()?.();
  t.deepEqual(await Promise.all(answers), [['192.0.2.1'], ['192.0.2.1']]);
  const later = guard.addresses('slow.example', 1935);
  t.is(asked, 2);
  waiting.shift()?.();
  t.deepEqual(await later, ['192.0.2.1']);
});
