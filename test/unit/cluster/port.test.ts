import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { Distrust } from '../../../cluster/distrust.ts';
import { UnreachableError } from '../../../cluster/errors.ts';
import { PeerPort } from '../../../cluster/peer/port.ts';
import { seal, unseal, type Call } from '../../../cluster/peer/wire.ts';
import type { NodeIdentity, PeerRequest } from '../../../cluster/types.ts';

const SECRETS = ['secret of the tests'];
const TIMEOUT = 10_000;
const CALL: PeerRequest = { method: 'POST', path: '/', headers: {}, body: Buffer.from('question') };

const identity = (id: string): NodeIdentity => ({ id, incarnation: `${id}1` });

/** @param aheadMs by how much its clock differs from this machine's */
function portOf(t: ExecutionContext, id: string, aheadMs: number, addresses: ReadonlyMap<string, string>): PeerPort {
  const port = new PeerPort({
    host: '127.0.0.1',
    port: 0,
    secrets: SECRETS,
    self: identity(id),
    now: () => Date.now() + aheadMs,
    addressOf: (other) => addresses.get(other),
    distrust: new Distrust(() => {}),
    onReached: () => {},
    onRefused: () => {},
    onFault: (error) => t.fail(error.message),
  });
  t.teardown(() => port.close());
  return port;
}

async function twoNodes(t: ExecutionContext, aheadMs: number) {
  const addresses = new Map<string, string>();
  const caller = portOf(t, 'a', 0, addresses);
  const called = portOf(t, 'b', aheadMs, addresses);
  const calls: string[] = [];
  addresses.set(
    'b',
    await called.listen(async ({ body }) => {
      calls.push(body.toString());
      return { status: 200, headers: {}, body: Buffer.from('answer') };
    }),
  );
  called.serveStreams((stream: Duplex, path) => stream.end(`stream ${path}`));
  return { caller, calls };
}

/** A node that answers every call with what it is told. */
async function answering(t: ExecutionContext, answer: (headers: IncomingHttpHeaders) => Record<string, string>) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, answer(request.headers)).end());
  });
  t.teardown(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return portOf(t, 'a', 0, new Map([['b', `http://127.0.0.1:${(server.address() as AddressInfo).port}`]]));
}

for (const aheadMs of [-20_000, 20_000, 86_400_000]) {
  test(`a node whose clock differs by ${aheadMs / 1000} s is called and sends streams`, async (t) => {
    const { caller, calls } = await twoNodes(t, aheadMs);
    t.is((await caller.call(identity('b'), CALL, TIMEOUT)).body.toString(), 'answer');
    t.deepEqual(calls, ['question']);
    const stream = await caller.connect(identity('b'), '/path', TIMEOUT);
    t.is((await stream.toArray()).join(''), 'stream /path');
    const held = await caller.hold(identity('b'), TIMEOUT);
    held.destroy();
  });
}

test('another life of a node is not called, whatever its clock', async (t) => {
  const { caller, calls } = await twoNodes(t, 20_000);
  const earlier = { id: 'b', incarnation: 'earlier' };
  await t.throwsAsync(caller.call(earlier, CALL, TIMEOUT), {
    instanceOf: UnreachableError,
    message: /restarted since/,
  });
  await t.throwsAsync(caller.connect(earlier, '/', TIMEOUT), { message: /restarted since/ });
  t.deepEqual(calls, []);
});

test('a call is repeated once, with its nonce, at the time that a node tells', async (t) => {
  const calls: Call[] = [];
  const told = Date.now() + 60_000;
  const caller = await answering(t, (headers) => {
    const call = unseal(SECRETS, 'call', headers) as Call;
    calls.push(call);
    return seal(SECRETS, 'answer', {
      status: 500,
      headers: {},
      nonce: call.nonce,
      // the hash of nothing
      bodyHash: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
      refused: 'time',
      time: told,
    });
  });
  const refused = { instanceOf: UnreachableError, message: /the clocks of the nodes differ too much/ } as const;
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), refused);
  const [first, second] = calls;
  t.is(calls.length, 2);
  t.deepEqual({ ...first, time: told }, { ...second });
  calls.length = 0;
  await t.throwsAsync(caller.connect(identity('b'), '/', TIMEOUT), refused);
  t.deepEqual(
    calls.map(({ time }) => time === told),
    [false, true],
  );
});

test('a time that no node of the cluster has signed is not taken', async (t) => {
  let calls = 0;
  const caller = await answering(t, (headers) => {
    calls++;
    const { nonce } = unseal(SECRETS, 'call', headers) as Call;
    const answer = { status: 500, headers: {}, nonce, bodyHash: '', refused: 'time', time: 0 };
    return seal(['another secret'], 'answer', answer);
  });
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), { message: /without proof of the cluster secret/ });
  t.is(calls, 1);
});
