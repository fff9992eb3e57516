import test from 'ava';
import { UnavailableError } from '../../../cluster/errors.ts';
import { openHeartbeat } from '../../support/cluster/heartbeat.ts';
import { until } from '../../support/time/until.ts';

const AWAY = new UnavailableError('Redis: no answer in time');

test('a node is connected by an answered beat, and degraded by one that fails', async (t) => {
  const { heartbeat, redis, done } = openHeartbeat(t);
  t.is(heartbeat.state, 'degraded');
  await heartbeat.beat();
  t.deepEqual(done(), ['beat', 'confirmed', 'outage ends', 'state connected']);
  redis.answer = { fails: AWAY };
  await heartbeat.beat();
  t.deepEqual(done(), [`outage: ${AWAY.message}`, 'state degraded', 'no beat', `fault: ${AWAY.message}`]);
  await heartbeat.beat();
  t.deepEqual(done(), [`outage: ${AWAY.message}`, 'no beat', `fault: ${AWAY.message}`], 'its state is the same');
  redis.answer = {};
  await heartbeat.beat();
  t.is(heartbeat.state, 'connected');
});

test('a beat that was answered but could not be handled degrades the node', async (t) => {
  const { heartbeat, redis, done } = openHeartbeat(t, { answer: { renewalFails: AWAY } });
  await heartbeat.beat();
  t.deepEqual(done(), ['beat', `outage: ${AWAY.message}`, `fault: ${AWAY.message}`]);
  redis.answer = {};
  await heartbeat.beat();
  t.is(heartbeat.state, 'connected');
});

for (const isConnected of [true, false])
  test(`a connection lost while a beat is answered leaves a ${isConnected ? 'connected' : 'degraded'} node degraded`, async (t) => {
    const { heartbeat, asked, hold, answer } = openHeartbeat(t);
    if (isConnected) await heartbeat.beat();
    hold();
    const beats = asked.beats;
    const beaten = heartbeat.beat();
    await until('Redis is asked', () => asked.beats > beats);
    heartbeat.down('the connection was closed');
    t.is(heartbeat.state, 'degraded');
    answer();
    await beaten;
    t.is(heartbeat.state, 'degraded');
    await heartbeat.beat();
    t.is(heartbeat.state, 'connected');
  });

test('changes published to a degraded node wait for its next beat, and go with the connection', async (t) => {
  const { heartbeat, redis, asked, keys, hear, claim } = openHeartbeat(t);
  await heartbeat.beat();
  heartbeat.down('the connection was closed');
  hear(claim('second'));
  t.deepEqual(keys(), ['first']);
  // a pull of the beat brings it in any case
  await heartbeat.beat();
  t.deepEqual(keys(), ['first', 'second']);
  redis.answer = { fails: AWAY };
  await heartbeat.beat();
  hear(`claim 2 3 3 token life life continue 0 null\nof-another-server`);
  heartbeat.down('the connection was closed');
  redis.answer = {};
  await heartbeat.beat();
  t.deepEqual(keys(), ['first', 'second']);
  t.is(asked.since.at(-1), 2);
});

test('of more changes than can wait for a beat, all are fetched', async (t) => {
  const { heartbeat, asked, keys, hear, claim } = openHeartbeat(t);
  await heartbeat.beat();
  heartbeat.wake();
  for (let at = 2; at <= 1002; at++) hear(claim(`k/${at}`));
  await until('they are asked for', () => asked.pulls === 2);
  await heartbeat.beat();
  t.is(keys().length, 1002);
});

test('a beat wanted while another one is answered follows at once', async (t) => {
  const { heartbeat, asked, hold, answer } = openHeartbeat(t);
  heartbeat.start();
  await until('it beats', () => heartbeat.state === 'connected');
  const beats = asked.beats;
  hold();
  heartbeat.wake();
  await until('Redis is asked', () => asked.beats === beats + 1);
  heartbeat.wake();
  answer();
  await until('it beats again', () => asked.beats === beats + 2);
  await heartbeat.close();
  t.is(asked.beats, beats + 2, 'and only once');
});

test('a node beats when the time of another one is over, sooner than usual', async (t) => {
  const { heartbeat, asked } = openHeartbeat(t, { answer: { nextSilentMs: 5 } });
  heartbeat.start();
  await until('it beats again', () => asked.beats >= 3);
  await heartbeat.close();
  t.is(heartbeat.state, 'connected');
});

test('the connection for messages is checked with every twelfth beat', async (t) => {
  const { heartbeat, asked } = openHeartbeat(t);
  for (let at = 0; at < 25; at++) await heartbeat.beat();
  t.is(asked.probes, 3);
});

test('the progress of restoring claims is reported until it is known', async (t) => {
  const { heartbeat, asked, renewal, redis, reported, done } = openHeartbeat(t, {
    answer: { recovery: 'r', open: false },
  });
  renewal.restored = 0;
  heartbeat.start();
  await until('it is reported', () => asked.answers === 2);
  t.deepEqual(reported, [undefined, { recovery: 'r', state: 0 }]);
  t.false(done().includes('confirmed'), 'Redis lacks valid claims of this node');
  renewal.restored = 2;
  heartbeat.wake();
  await until('it is reported', () => asked.answers === 4);
  t.deepEqual(reported.slice(2), [
    { recovery: 'r', state: 0 },
    { recovery: 'r', state: 2 },
  ]);
  t.true(done().includes('confirmed'));
  redis.answer = { recovery: 'r', open: false, replaced: true };
  heartbeat.wake();
  await until('it is reported', () => asked.answers === 6);
  t.deepEqual(reported[5], { recovery: 'r', state: 0 }, 'one whose id another process has cannot have restored any');
  t.false(done().includes('replaced'), 'Redis may remember an earlier life of this node');
  redis.answer = { fails: AWAY };
  await heartbeat.beat();
  redis.answer = {};
  await heartbeat.beat();
  t.deepEqual(reported[7], { recovery: 'r', state: 0 }, 'a failed beat changes nothing of it');
  await heartbeat.beat();
  t.is(reported[8], undefined);
  await heartbeat.close();
});

test('a node that was marked dead loses everything, and joins anew at once', async (t) => {
  const { heartbeat, asked, redis, done } = openHeartbeat(t);
  heartbeat.start();
  await until('it beats', () => heartbeat.state === 'connected');
  done();
  redis.once = { markedDead: true };
  heartbeat.wake();
  await until('it beats again', () => asked.answers === 3);
  await heartbeat.close();
  t.deepEqual(done().slice(0, 3), ['beat', 'loses all', 'marked dead']);
  t.is(asked.beats, 3);
});

test('another process with the id of a node is reported once, and again when it happens again', async (t) => {
  const { heartbeat, redis, done } = openHeartbeat(t, { answer: { replaced: true } });
  await heartbeat.beat();
  await heartbeat.beat();
  t.is(done().filter((event) => event === 'replaced').length, 1);
  redis.answer = {};
  await heartbeat.beat();
  redis.answer = { replaced: true };
  await heartbeat.beat();
  t.is(done().filter((event) => event === 'replaced').length, 1);
});

test('news of nodes are announced when all is known, though the beat that brought them failed', async (t) => {
  const { heartbeat, redis, done } = openHeartbeat(t, {
    answer: { nodesChanged: true, draining: true, renewalFails: AWAY },
  });
  await heartbeat.beat();
  t.false(done().some((event) => event === 'nodes' || event === 'drain true'));
  t.false(heartbeat.draining);
  redis.answer = { draining: true };
  await heartbeat.beat();
  t.deepEqual(
    done().filter((event) => event === 'nodes' || event === 'drain true'),
    ['drain true', 'nodes'],
  );
  t.true(heartbeat.draining);
  redis.answer = {};
  await heartbeat.beat();
  t.deepEqual(done(), ['beat', 'confirmed', 'drain false', 'outage ends']);
});

test('each beat says which nodes this one has to ask', async (t) => {
  const { heartbeat, redis, done } = openHeartbeat(t, { answer: { asks: [{ id: 'b', incarnation: 'life' }] } });
  await heartbeat.beat();
  t.deepEqual(done().slice(0, 2), ['beat', 'asks b']);
  redis.answer = { asks: [{ id: 'b', incarnation: 'life' }] };
  await heartbeat.beat();
  t.true(done().includes('asks b'));
});

test('the other nodes are asked while a lease is at stake, and Redis is unreachable', async (t) => {
  const { heartbeat, leases, redis, done } = openHeartbeat(t);
  await heartbeat.beat();
  redis.answer = { fails: AWAY };
  await heartbeat.beat();
  t.false(done().includes('at stake'));
  leases.atStake = true;
  await heartbeat.beat();
  t.true(done().includes('at stake'));
  redis.answer = { fails: new Error('what Redis says is not understood') };
  await heartbeat.beat();
  t.false(done().includes('at stake'));
});

for (const isConnected of [true, false])
  test(`a closed node reports no loss of its connection, and stays ${isConnected ? 'connected' : 'degraded'}`, async (t) => {
    const { heartbeat, asked, leases, redis, hold, answer, done } = openHeartbeat(t);
    if (isConnected) await heartbeat.beat();
    const { state } = heartbeat;
    leases.atStake = true;
    redis.answer = { fails: AWAY };
    hold();
    const { beats } = asked;
    const beaten = heartbeat.beat();
    await until('Redis is asked', () => asked.beats > beats);
    done();
    const closed = heartbeat.close();
    heartbeat.down('the connection was closed');
    answer();
    await Promise.all([beaten, closed]);
    t.deepEqual(done(), ['no beat', `fault: ${AWAY.message}`]);
    t.is(heartbeat.state, state);
    await heartbeat.beat();
    t.is(asked.beats, beats + 1, 'it does not beat any more');
  });

test('a node that is closed while it beats is not connected by that', async (t) => {
  const { heartbeat, asked, hold, answer, done } = openHeartbeat(t);
  hold();
  const beaten = heartbeat.beat();
  await until('Redis is asked', () => asked.beats === 1);
  const closed = heartbeat.close();
  answer();
  await Promise.all([beaten, closed]);
  t.false(done().some((event) => event.startsWith('state') || event.startsWith('outage')));
});

test('another epoch says that Redis was emptied; the first one does not', async (t) => {
  const { heartbeat, sync, redis, done } = openHeartbeat(t);
  await heartbeat.beat();
  t.false(done().includes('emptied'));
  redis.answer = { epoch: 2 };
  await heartbeat.beat();
  t.true(done().includes('emptied'));
  t.is(sync.epoch, 2);
});

test('a caller that waits for a Redis that is being restored goes on as soon as it is open', async (t) => {
  const { heartbeat, redis, opened } = openHeartbeat(t, { answer: { open: false } });
  await heartbeat.beat();
  for (const again of [false, true]) {
    let isOpen = false;
    const waited = opened().then(() => (isOpen = true));
    await heartbeat.beat();
    t.false(isOpen);
    redis.answer = {};
    await heartbeat.beat();
    await waited;
    if (again) return;
    await opened();
    redis.answer = { open: false };
    await heartbeat.beat();
  }
});

for (const [what, run, isSame] of [
  ['the same run', 'run', true],
  ['another run', 'other', false],
  ['a run that it does not name', '', false],
] as const)
  test(`of a Redis that comes back as ${what}, ${isSame ? 'only changes are' : 'everything is'} read`, async (t) => {
    const { heartbeat, redis, asked } = openHeartbeat(t, { answer: { run: run && 'run' } });
    await heartbeat.beat();
    heartbeat.down('the connection was closed');
    redis.answer = { run };
    await heartbeat.beat();
    t.deepEqual(asked.since, [0, isSame ? 1 : 0]);
    await heartbeat.beat();
    t.is(asked.pulls, 2, 'and nothing while nothing has changed');
  });

test('a pull that no caller waits for may fail: the next beat finds what it has missed', async (t) => {
  const { heartbeat, sync, asked, redis, keys, hear, claim, done } = openHeartbeat(t);
  await heartbeat.beat();
  redis.pullFails = AWAY;
  claim('second');
  done();
  for (const message of ['claims', 'config', claim('third')]) {
    const { pulls } = asked;
    hear(message);
    await until('it is asked for', () => asked.pulls > pulls);
  }
  t.deepEqual(done(), [], 'nor is that reported: it is, when a beat fails');
  redis.pullFails = new Error('an answer that is not understood');
  await sync.refresh();
  t.deepEqual(done(), ['fault: an answer that is not understood']);
  redis.pullFails = undefined;
  await heartbeat.beat();
  t.deepEqual(keys(), ['first', 'second', 'third']);
});
