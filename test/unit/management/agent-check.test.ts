import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { pino } from 'pino';
import { listenAgentCheck, type AgentState } from '../../../src/management/agent-check.ts';
import { until } from '../../support/time/until.ts';

test('a check receives the share of newcomers, whatever it sends, and whether a node drains', async (t) => {
  let state: AgentState = { away: undefined, room: 1 };
  const listener = await listenAgentCheck('127.0.0.1', 0, () => state, pino({ level: 'silent' }));
  t.teardown(() => listener.close());
  const ask = async (sent = ''): Promise<string> => {
    const socket = connect(listener.port, '127.0.0.1');
    socket.write(sent);
    return await text(socket);
  };
  t.is(await ask(), 'ready up 100%\n');
  state = { away: undefined, room: 0.424 };
  t.is(await ask('hello\n'), 'ready up 42%\n');
  state = { away: undefined, room: 0 };
  t.is(await ask(), 'ready up 1%\n', 'a cluster of full nodes lets people in');
  state = { away: 'draining', room: 1 };
  t.is(await ask(), 'drain\n');
});

test("a load balancer that leaves before the agent's answer, or stays after it, does no harm", async (t) => {
  const listener = await listenAgentCheck(
    '127.0.0.1',
    0,
    () => ({ away: undefined, room: 1 }),
    pino({ level: 'silent' }),
  );
  t.teardown(() => listener.close());
  const hasty = connect(listener.port, '127.0.0.1');
  await once(hasty, 'connect');
  hasty.resetAndDestroy();
  const silent = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true }).resume();
  let isLeft = false;
  silent.on('error', () => {}).on('close', () => (isLeft = true));
  await once(silent, 'end');
  await until('the connection of one that does not close it is gone', () => {
    silent.write('?');
    return isLeft;
  });
  t.true(isLeft);
});
