import test, { type ExecutionContext } from 'ava';
import type { Guard } from '../../../../src/access/guard.ts';
import { askedByHand, denied, notedSessions, WEBHOOK_SESSION } from '../../../support/access/access.ts';
import { RtmpClient, type RtmpClientOptions } from '../../../support/rtmp/rtmp-client.ts';
import { startRtmp, type RtmpSetup } from '../../../support/rtmp/rtmp-server.ts';
import { until } from '../../../support/time/until.ts';

/** A control server that is asked for RTMP, as it is configured. */
const WEBHOOKS = {
  enables: { providers: 'rtmp', publishers: '' },
} as unknown as RtmpSetup['admissionWebhooks'];

async function setUp(t: ExecutionContext, guard: Guard, setup: RtmpSetup = {}) {
  const ends: string[] = [];
  const server = await startRtmp({ ...setup, access: { guards: [guard], webhookSessions: notedSessions(ends) } });
  t.teardown(() => server.close());
  const connect = async (options: Partial<RtmpClientOptions> = {}) => {
    const client = await RtmpClient.connect({ ...server, ...options });
    t.teardown(() => client.close());
    return client;
  };
  return { ...server, ends, connect };
}

test('a publisher that a guard rejects receives that, and no more', async (t) => {
  const { connect, server, ends, lines } = await setUp(t, () => {
    throw denied();
  });
  const client = await connect();
  await t.throwsAsync(client.publish('live'), { message: /^NetStream.Publish.Rejected: / });
  await client.ended();
  await until('the session is gone', () => server.sessions === 0);
  t.deepEqual(ends, []);
  t.is(lines.filter(({ event }) => event === 'client.refused').length, 1);
});

test('a publisher whose time is over is notified before it is disconnected, and its guard once', async (t) => {
  const { connect, server, ends } = await setUp(t, () => async () => ({
    until: Date.now() + 700,
    session: WEBHOOK_SESSION,
  }));
  const client = await connect();
  await client.publish('live');
  await client.ended();
  t.like(client.statuses().at(-1), {
    level: 'error',
    code: 'NetStream.Publish.Failed',
    description: 'its allowed time is over',
  });
  await until('the session is gone', () => server.sessions === 0);
  t.deepEqual(ends, ['its allowed time is over']);
});

test('a publisher may be sent to another application where a control server is asked, also from one that is not there', async (t) => {
  const guard: Guard = ({ app }) =>
    app === 'nothing' ? async () => ({ target: { app: 'app', stream: 'moved' } }) : undefined;
  const { connect, server, registry } = await setUp(t, guard, { admissionWebhooks: WEBHOOKS });
  const client = await connect({ app: 'nothing' });
  await client.publish('live');
  t.is(client.statuses()[0]?.description, 'moved is now published.');
  t.true(registry.vhost('default').application('app').inUse);
  const other = await connect({ app: 'absent' });
  await t.throwsAsync(other.publish('live'), { message: /^NetStream.Publish.Failed: Could not find the application/ });
  await until('the other is gone', () => server.sessions === 1);
});

test('a publisher that leaves before the answer is noticed: its question ends, and what is opened later is closed', async (t) => {
  const { guard, questions } = askedByHand();
  const { connect, server, ends, registry } = await setUp(t, guard);
  const client = await connect();
  const published = t.throwsAsync(client.publish('live'));
  const question = await until('the question', () => questions[0]);
  // not all encoders wait for the answer
  client.metadata({ title: 'x' });
  client.socket.end();
  await published;
  await until('its question ends', () => question.signal?.aborted);
  await until('the session is gone', () => server.sessions === 0);
  t.deepEqual(ends, []);
  question.admit();
  await until('what it opened is closed', () => ends.length === 1);
  t.false(registry.vhost('default').application('app').inUse);
});

test('packets that a publisher sends before guards answer are held up to a limit, and count afterwards', async (t) => {
  const { guard, questions } = askedByHand();
  const { connect, server, lines } = await setUp(t, guard);
  const client = await connect();
  const published = client.publish('live');
  const question = await until('the question', () => questions[0]);
  // more than a client may send that does not publish, and than the system buffers
  const messages = 12 * 1024;
  for (let i = 0; i < messages; i++) client.metadata({ title: 'x'.repeat(1024) });
  let waiting = 0;
  await until('the rest waits', () => {
    const before = waiting;
    waiting = client.socket.writableLength;
    return waiting > 0 && waiting === before;
  });
  t.is(server.sessions, 1);
  question.admit();
  await published;
  await until('all of it was read', () => client.socket.writableLength === 0);
  client.command('FCUnpublish', 0, null, 'live');
  await client.until('the stream is unpublished', () =>
    client.statuses().some(({ code }) => code === 'NetStream.Unpublish.Success'),
  );
  t.deepEqual(
    lines.filter(({ level }) => (level as number) >= 40),
    [],
  );
});

test('an RTMP publisher that is rejected while it sends is notified', async (t) => {
  const { guard, questions } = askedByHand();
  const { connect, server } = await setUp(t, guard);
  const client = await connect();
  const published = t.throwsAsync(client.publish('live'), { message: /^NetStream.Publish.Rejected: / });
  const question = await until('the question', () => questions[0]);
  client.metadata({ title: 'x' });
  question.refuse();
  await published;
  await until('the session is gone', () => server.sessions === 0);
});
