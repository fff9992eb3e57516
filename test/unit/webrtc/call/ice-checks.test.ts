import test from 'ava';
import { readStun, writeStun, type StunMessage } from '../../../../src/protocols/stun/message.ts';
import { IceChecks, type IceAddress, type RemoteCandidate } from '../../../../src/webrtc/call/ice-checks.ts';

const LOCAL = { usernameFragment: 'here', password: 'password-of-this-end' };
const REMOTE = { usernameFragment: 'there', password: 'password-of-the-other' };
const NEAR: RemoteCandidate = { address: '10.0.0.1', port: 1, priority: 100 };
const FAR: RemoteCandidate = { address: '203.0.113.1', port: 2, priority: 50 };

function setUp() {
  const sent: { readonly to: IceAddress; readonly message: StunMessage; readonly datagram: Buffer }[] = [];
  const selected: IceAddress[] = [];
  const peers: RemoteCandidate[] = [];
  const checks = new IceChecks({
    local: LOCAL,
    send: (datagram, to) => {
      const message = readStun(datagram, REMOTE.password) ?? readStun(datagram, LOCAL.password);
      if (message !== undefined) sent.push({ to, message, datagram });
    },
    onSelected: (to) => selected.push(to),
    onPeer: (from) => peers.push(from),
  });
  /** Answers the newest request to an address. */
  const answer = (from: IceAddress, now: number, password = REMOTE.password): void => {
    const request = sent.findLast(({ to, message }) => to.address === from.address && message.kind === 'request');
    const transaction = request?.message.transaction ?? Buffer.alloc(12);
    checks.receive(writeStun({ kind: 'success', transaction, mapped: from }, password), from, now);
  };
  const ask = (message: Partial<StunMessage>, from: IceAddress, password = LOCAL.password): void => {
    const whole = { kind: 'request', transaction: Buffer.alloc(12, 7), username: 'here:there', ...message } as const;
    checks.receive(writeStun(whole, password), from, 0);
  };
  return { checks, sent, selected, peers, answer, ask };
}

test('every address is asked until one answers, and the best is agreed on', (t) => {
  const { checks, sent, selected, answer } = setUp();
  checks.add(NEAR);
  checks.add(FAR);
  t.true(checks.tick(0));
  t.deepEqual(sent, []);
  checks.begin(REMOTE);
  checks.tick(0);
  t.deepEqual(
    sent.map(({ to }) => to.address),
    [NEAR.address, FAR.address],
  );
  t.like(sent[0]?.message, { username: 'there:here', nominates: undefined });
  t.is(typeof sent[0]?.message.controlling, 'bigint');
  checks.tick(100);
  t.is(sent.length, 2);
  checks.tick(250);
  t.is(sent.length, 4);
  t.deepEqual(sent[2]?.datagram, sent[0]?.datagram);

  answer(FAR, 300);
  t.true(checks.isValid(FAR));
  t.false(checks.isValid(NEAR));
  t.is(checks.selected, undefined);
  answer(NEAR, 350);
  const nomination = sent.at(-1);
  t.is(nomination?.to.address, NEAR.address);
  t.true(nomination?.message.nominates);
  t.deepEqual(selected, []);
  answer(NEAR, 400);
  t.deepEqual(selected, [{ address: NEAR.address, port: NEAR.port }]);
  t.like(checks.selected, { address: NEAR.address });
});

test('a worse address is taken when the better one does not answer soon', (t) => {
  const { checks, selected, answer } = setUp();
  checks.begin(REMOTE);
  checks.add(NEAR);
  checks.add(FAR);
  checks.tick(0);
  answer(FAR, 50);
  checks.tick(200);
  answer(FAR, 210);
  t.deepEqual(selected, []);
  checks.tick(300);
  answer(FAR, 310);
  t.like(selected[0], { address: FAR.address });
});

test('consent is asked for again and again, and expires', (t) => {
  const { checks, sent, answer } = setUp();
  checks.begin(REMOTE);
  checks.add(NEAR);
  checks.tick(0);
  answer(NEAR, 10);
  answer(NEAR, 20);
  const before = sent.length;
  checks.tick(3000);
  t.is(sent.length, before);
  checks.tick(5000);
  t.is(sent.length, before + 1);
  answer(NEAR, 5010);
  t.true(checks.tick(35_000));
  t.false(checks.tick(35_100));
});

test('answers of others, of other requests and with another password change nothing', (t) => {
  const { checks, answer } = setUp();
  checks.begin(REMOTE);
  checks.add(NEAR);
  checks.tick(0);
  answer(NEAR, 10, 'wrong');
  answer(FAR, 10);
  const stray = writeStun({ kind: 'success', transaction: Buffer.alloc(12) }, REMOTE.password);
  checks.receive(stray, NEAR, 10);
  checks.receive(Buffer.from('none'), NEAR, 10);
  t.false(checks.isValid(NEAR));
});

test("the peer's requests are answered, and tell where it is", (t) => {
  const { checks, sent, peers, ask } = setUp();
  ask({ priority: 77 }, FAR);
  t.like(sent[0], { to: FAR, message: { kind: 'success', mapped: { address: FAR.address, port: FAR.port } } });
  t.deepEqual(peers, [{ ...FAR, priority: 77 }]);
  ask({ username: 'other:there' }, FAR);
  ask({}, FAR, 'wrong');
  t.is(sent.length, 1);
  checks.add(FAR);
  ask({ priority: 77 }, FAR);
  t.is(peers.length, 1);
});

test('a peer that wants the control, too, learns that it has not got it', (t) => {
  const { sent, ask } = setUp();
  ask({ controlling: 2n ** 63n }, FAR);
  t.like(sent[0]?.message, { kind: 'error', error: 487 });
});

test('a peer has a limited number of addresses', (t) => {
  const { checks, sent } = setUp();
  checks.begin(REMOTE);
  for (let port = 1; port <= 100; port++) checks.add({ ...NEAR, port });
  checks.tick(0);
  t.is(sent.length, 24);
});
