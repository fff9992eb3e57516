import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { Guard } from '../../../src/access/guard.ts';
import { askedByHand, denied, notedSessions, WEBHOOK_SESSION } from '../../support/access/access.ts';
import { VIDEO } from '../../support/server/live.ts';
import { H264_VIDEO, offerOf } from '../../support/webrtc/offers.ts';
import { SignallingClient } from '../../support/webrtc/signalling-client.ts';
import { until } from '../../support/time/until.ts';
import { startWebrtc } from '../../support/webrtc/webrtc-server.ts';

const SDP = { 'content-type': 'application/sdp' };
const OFFERS = {
  whip: offerOf([{ ...H264_VIDEO, direction: 'sendonly' }]),
  whep: offerOf([H264_VIDEO]),
};
const DIRECTIONS = ['whip', 'whep'] as const;

/** A server with a stream `stream` for viewers, whose guard decides about everybody. */
async function start(t: ExecutionContext, guard: Guard) {
  const ends: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const access: Partial<AccessOptions> = { guards: [guard], webhookSessions: notedSessions(ends), log };
  const server = await startWebrtc(t, { access });
  const application = server.registry.vhost('default').application('app');
  const input = application.publish('stream', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'stream');
  output.setTracks([VIDEO]);
  application.announce(output);
  const post = async (path: string, body: string, signal?: AbortSignal) => {
    const response = await fetch(server.url + path, { method: 'POST', headers: SDP, body, signal: signal ?? null });
    return { status: response.status, type: response.headers.get('content-type'), body: await response.text() };
  };
  const signal = async (path: string) => {
    const client = await SignallingClient.open(server.url.replace('http', 'ws') + path);
    t.teardown(() => client.socket.terminate());
    client.send({ command: 'request_offer' });
    return client;
  };
  const refusals = () => lines.filter(({ event }) => event === 'client.refused').map(({ msg }) => String(msg));
  return { ...server, application, output, ends, post, signal, refusals, lines };
}

test("a stranger's offer is not read, and whose is malformed has ended for the guards", async (t) => {
  let admits = false;
  const { post, ends, refusals, lines } = await start(t, () => {
    if (!admits) throw denied();
    return async () => ({ session: WEBHOOK_SESSION });
  });
  for (const direction of DIRECTIONS) {
    const path = `/app/new?direction=${direction}`;
    for (const sdp of ['hello', OFFERS[direction]]) {
      const { status, type } = await post(path, sdp);
      t.deepEqual([status, type], [401, 'text/plain; charset=utf-8']);
    }
  }
  t.deepEqual(ends, []);
  t.is(refusals().length, 2, 'once for each direction');
  admits = true;
  for (const path of ['/app/new?direction=whip', '/app/stream?direction=whep']) {
    ends.length = 0;
    const { status } = await post(path, 'hello');
    t.is(status, 400);
    t.is(ends.length, 1);
    t.regex(refusals().at(-1) ?? '', /^WebRTC (publisher|viewer) refused: Could not parse SDP/);
    t.regex(String(lines.at(-1)?.remote), /^127\.0\.0\.1:/);
  }
});

test('a peer on the signalling that a guard rejects gets the message of all that get no offer', async (t) => {
  const { signal, ends, refusals } = await start(t, () => () => Promise.reject(denied()));
  for (const path of ['/app/stream', '/app/new?direction=send']) {
    const client = await signal(path);
    await client.end();
    t.deepEqual(client.received, [{ code: 404, error: 'Cannot create offer' }]);
  }
  t.deepEqual(ends, []);
  t.is(refusals().length, 2);
});

test('a peer on the signalling gets a message when its time is over, and is disconnected', async (t) => {
  const { signal, ends, output, application } = await start(t, () => async () => ({
    // long enough for an offer to be made on a busy machine
    until: Date.now() + 6000,
    session: WEBHOOK_SESSION,
  }));
  const watchUntilTheEnd = async (path: string) => {
    const client = await signal(path);
    await client.command('offer');
    await client.end();
    t.deepEqual(client.received.at(-1), { code: 403, error: 'its allowed time is over' });
  };
  await Promise.all(['/app/stream', '/app/new?direction=send'].map(watchUntilTheEnd));
  t.deepEqual(ends, ['its allowed time is over', 'its allowed time is over']);
  t.is(output.sessions.size, 0);
  t.is(application.stream('new'), undefined);
});

test('peers that leave before the answer are noticed, and what is opened later is closed', async (t) => {
  const { guard, questions } = askedByHand();
  const { post, signal, ends, output, application } = await start(t, guard);
  const leave: (() => Promise<void>)[] = [];
  for (const direction of DIRECTIONS) {
    const gone = new AbortController();
    const posted = post(`/app/stream?direction=${direction}`, OFFERS[direction], gone.signal);
    leave.push(async () => {
      gone.abort();
      await t.throwsAsync(posted);
    });
  }
  for (const path of ['/app/stream', '/app/stream?direction=send']) {
    const client = await signal(path);
    leave.push(async () => client.socket.close());
  }
  await until('all questions', () => questions.length === leave.length);
  await Promise.all(leave.map((go) => go()));
  await until('the questions end', () => questions.every((question) => question.signal?.aborted));
  t.deepEqual(ends, []);
  for (const question of questions) question.admit();
  await until('what they opened is closed', () => ends.length === questions.length);
  t.deepEqual(new Set(ends), new Set(['The client has gone']));
  t.is(output.sessions.size, 0);
  t.is(application.counters.providers.webrtc, 0);
});

test('peers are sent to other streams', async (t) => {
  const guard: Guard =
    ({ direction }) =>
    async () => ({ target: { app: 'app', stream: direction === 'incoming' ? 'moved' : 'stream' } });
  const { post, signal, output, application } = await start(t, guard);
  t.is((await post('/nothing/asked?direction=whip', OFFERS.whip)).status, 201);
  t.is(application.counters.providers.webrtc, 1);
  const options = { replace: false, maxConnections: 0 };
  t.throws(() => application.check('moved', { type: 'Rtmp', kind: 'rtmp' }, options), { code: 'streamExists' });
  t.is((await post('/nothing/asked?direction=whep', OFFERS.whep)).status, 201);
  await (await signal('/nothing/asked')).command('offer');
  t.is(output.sessions.size, 2);
});

test('a WebRTC client that asks for what its port does not offer is rejected and logged', async (t) => {
  const { signalling, refusals } = await start(t, () => undefined);
  const app = Fastify({ forceCloseConnections: true });
  await app.register(signalling.routes({}));
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  for (const direction of DIRECTIONS) {
    const response = await fetch(`http://127.0.0.1:${port}/app/stream?direction=${direction}`, {
      method: 'POST',
      headers: SDP,
      body: OFFERS[direction],
    });
    t.is(response.status, 501);
  }
  t.deepEqual(refusals(), [
    'WebRTC publisher refused: Publishing over WebRTC is not available on this port',
    'WebRTC viewer refused: Playing over WebRTC is not available on this port',
  ]);
  const client = await SignallingClient.open(`ws://127.0.0.1:${port}/app/other`);
  t.teardown(() => client.socket.terminate());
  client.send({ command: 'request_offer' });
  await once(client.socket, 'close');
  t.deepEqual(client.received, [{ code: 404, error: 'Cannot create offer' }]);
  t.is(refusals().length, 3);
  await t.throwsAsync(SignallingClient.open(`ws://127.0.0.1:${port}/nothing`));
  t.is(refusals().at(-1), 'WebRTC viewer refused: its path names no stream');
});
