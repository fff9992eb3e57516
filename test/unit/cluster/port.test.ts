import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { OutcomeUnknownError, UnreachableError } from '../../../cluster/errors.ts';
import { ClockError } from '../../../cluster/peer/call-clock.ts';
import { exchange } from '../../../cluster/peer/exchange.ts';
import { bodyHash } from '../../../cluster/peer/mac.ts';
import { seal, unseal, type Answer, type Call } from '../../../cluster/peer/wire.ts';
import type { NodeIdentity, PeerRequest } from '../../../cluster/types.ts';
import { peerPort } from '../../support/cluster/peer-port.ts';

const SECRETS = ['secret of the tests'];
const TIMEOUT = 10_000;
const DAY_MS = 86_400_000;
const CALL: PeerRequest = { method: 'POST', path: '/', headers: {}, body: Buffer.from('question') };
const NOTHING = Buffer.alloc(0);
const TOO_OLD = { instanceOf: ClockError, message: /too old by the clock of the node/ } as const;

const identity = (id: string): NodeIdentity => ({ id, incarnation: `${id}1` });

const portOf = (t: ExecutionContext, id: string, addresses: ReadonlyMap<string, string>, aheadMs = 0) =>
  peerPort(t, identity(id), { secrets: SECRETS, addressOf: (other) => addresses.get(other), aheadMs });

/** A node, and who calls it. */
async function called(t: ExecutionContext) {
  const addresses = new Map<string, string>();
  const port = portOf(t, 'b', addresses);
  const calls: string[] = [];
  addresses.set(
    'b',
    await port.listen(async ({ body }) => {
      calls.push(body.toString());
      return { status: 200, headers: {}, body: Buffer.from('answer') };
    }),
  );
  port.serveStreams((stream: Duplex, path) => stream.end(`stream ${path}`));
  return { calls, address: addresses.get('b') ?? '', caller: (aheadMs = 0) => portOf(t, 'a', addresses, aheadMs) };
}

/** Who answers calls in place of node b, and who calls that. */
async function answering(t: ExecutionContext, answer: (call: Call, response: ServerResponse) => void) {
  const calls: Call[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const call = unseal(SECRETS, 'call', request.headers) as Call;
    request.resume().on('end', () => {
      calls.push(call);
      answer(call, response);
    });
  };
  const server = createServer(listener);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { calls, address, caller: portOf(t, 'a', new Map([['b', address]])) };
}

function reply(response: ServerResponse, { nonce }: Call, answer: Partial<Answer>, secrets = SECRETS): void {
  const whole = { status: 200, headers: {}, nonce, bodyHash: bodyHash(NOTHING), ...answer };
  response.writeHead(200, seal(secrets, 'answer', whole)).end();
}

for (const aheadMs of [-DAY_MS, -20_000, 20_000, DAY_MS]) {
  test(`a node whose time is ${aheadMs / 1000} s ahead calls others and gets their streams`, async (t) => {
    const { caller, calls } = await called(t);
    const port = caller(aheadMs);
    t.is((await port.call(identity('b'), CALL, TIMEOUT)).body.toString(), 'answer');
    t.deepEqual(calls, ['question']);
    const stream = await port.connect(identity('b'), '/path', TIMEOUT);
    t.is((await stream.toArray()).join(''), 'stream /path');
    (await port.hold(identity('b'), TIMEOUT)).destroy();
    const other = caller();
    t.is((await other.call(identity('b'), CALL, TIMEOUT)).status, 200, 'whoever has set the clock of the node');
    t.is(calls.length, 2);
  });
}

test('an earlier incarnation of a node is not called', async (t) => {
  const { caller, calls } = await called(t);
  const earlier = { id: 'b', incarnation: 'earlier' };
  const port = caller(-20_000);
  await t.throwsAsync(port.call(earlier, CALL, TIMEOUT), { instanceOf: UnreachableError, message: /restarted since/ });
  await t.throwsAsync(port.connect(earlier, '/', TIMEOUT), { message: /restarted since/ });
  t.deepEqual(calls, []);
});

test('a call that was refused as too old is not valid later either', async (t) => {
  const { caller, calls, address } = await called(t);
  const call: Call = {
    from: identity('a'),
    to: identity('b'),
    method: 'POST',
    path: '/',
    headers: {},
    time: Date.now() - 11_000,
    nonce: 'recorded',
    bodyHash: bodyHash(CALL.body),
  };
  const agent = new Agent();
  const post = () =>
    exchange({ address, agent, secrets: SECRETS, signal: AbortSignal.timeout(TIMEOUT) }, call, CALL.body);
  const { time = 0 } = await t.throwsAsync(post(), TOO_OLD);
  t.true(time > call.time);
  await caller(-DAY_MS).call(identity('b'), CALL, TIMEOUT);
  await t.throwsAsync(post(), TOO_OLD);
  t.is(calls.length, 1);
});

test('a call is made anew once, at the time that the node sends, and the next ones at that time at once', async (t) => {
  const told = Date.now() + DAY_MS;
  const { caller, calls } = await answering(t, (call, response) => {
    reply(response, call, call.time < told ? { refused: 'time', time: told } : {});
  });
  t.is((await caller.call(identity('b'), { ...CALL, body: NOTHING }, TIMEOUT)).status, 200);
  const [first, second] = calls;
  t.is(calls.length, 2);
  t.not(first?.nonce, second?.nonce, 'an answer to the one says nothing of the other');
  await caller.call(identity('b'), CALL, TIMEOUT);
  t.is(calls.length, 3);
});

test('a call that is refused again fails with an error', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => {
    reply(response, call, { refused: 'time', time: call.time + DAY_MS });
  });
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), TOO_OLD);
  t.is(calls.length, 2);
  await t.throwsAsync(caller.connect(identity('b'), '/', TIMEOUT), TOO_OLD);
  t.is(calls.length, 4);
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT, { once: true }), TOO_OLD);
  t.is(calls.length, 5);
});

test('a node that was replaced by an older version, which judges by the time of the cluster, is called by that', async (t) => {
  let isOld = false;
  const { caller, calls } = await answering(t, (call, response) => {
    const time = Date.now() + DAY_MS;
    if (isOld) reply(response, call, Math.abs(call.time - Date.now()) > 10_000 ? { refused: 'time' } : {});
    else reply(response, call, call.time < time - 10_000 ? { refused: 'time', time } : {});
  });
  const call = { ...CALL, body: NOTHING };
  t.is((await caller.call(identity('b'), call, TIMEOUT)).status, 200);
  t.is(calls.length, 2);
  isOld = true;
  t.is((await caller.call(identity('b'), call, TIMEOUT)).status, 200);
  t.is(calls.length, 4);
  t.is((await caller.call(identity('b'), call, TIMEOUT)).status, 200);
  t.is(calls.length, 5);
});

test('a node that sends no time, as those of older versions, is called once', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => reply(response, call, { refused: 'time' }));
  const { lives } = await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), TOO_OLD);
  t.true(lives);
  t.is(calls.length, 1);
});

test('a time that no node of the cluster has signed is not taken', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => {
    reply(response, call, { refused: 'time', time: 0 }, ['another secret']);
  });
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), { message: /without proof of the cluster secret/ });
  t.is(calls.length, 1);
});

test('two attempts of a call share one timeout', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => {
    if (calls.length === 1) reply(response, call, { refused: 'time', time: call.time + DAY_MS });
  });
  await t.throwsAsync(caller.call(identity('b'), CALL, 2000), {
    instanceOf: OutcomeUnknownError,
    message: /no answer in time/,
  });
  t.is(calls.length, 2);
});

for (const refused of ['time', 'repeated', 'busy', 'another'] as const) {
  test(`a call whose connection was cut may have been executed, also when the next one says ${refused}`, async (t) => {
    const { caller, calls } = await answering(t, (call, response) => {
      if (calls.length === 1) reply(response, call, {});
      // as a node that has executed it and loses its connection
      else if (calls.length === 2) response.destroy();
      else reply(response, call, { refused, time: call.time + DAY_MS });
    });
    await caller.call(identity('b'), { ...CALL, body: NOTHING }, TIMEOUT);
    const error = await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), { instanceOf: OutcomeUnknownError });
    t.is(error.lives, refused !== 'another');
    t.is(calls.length, 3);
    t.is(calls[1]?.nonce, calls[2]?.nonce);
  });
}

test('the same when the next one is answered without proof', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => {
    if (calls.length === 1) reply(response, call, {});
    else if (calls.length === 2) response.destroy();
    else response.writeHead(403).end();
  });
  await caller.call(identity('b'), { ...CALL, body: NOTHING }, TIMEOUT);
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT), { instanceOf: OutcomeUnknownError });
});

test('a call that is made once has a connection of its own', async (t) => {
  const { caller, calls } = await answering(t, (call, response) => {
    if (calls.length === 1) reply(response, call, {});
    else if (calls.length === 2) response.destroy();
    else reply(response, call, { refused: 'busy' });
  });
  await caller.call(identity('b'), { ...CALL, body: NOTHING }, TIMEOUT);
  await t.throwsAsync(caller.call(identity('b'), CALL, TIMEOUT, { once: true }), { instanceOf: OutcomeUnknownError });
  t.is(calls.length, 2, 'a new connection that is cut has not died before');
});
