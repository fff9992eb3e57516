import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import { accessDenied, Denial } from '../../../src/access/denial.ts';
import type { Guard } from '../../../src/access/guard.ts';
import type { PlayRequest } from '../../../src/access/request.ts';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import type { FindOutput } from '../../../src/core/find-output.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { kilnError } from '../../../src/errors.ts';
import { CLIENT, notedSessions, WEBHOOK_SESSION, playRequest, publishRequest } from '../../support/access/access.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { addVhost, goLive, VIDEO } from '../../support/server/live.ts';
import { until } from '../../support/time/until.ts';

const RTMP = { maxConnection: 2, blockDuplicateStreamName: true };
const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;

/** Virtual hosts `default` and `other`, with guards; `ends` are the reasons that guards were told. */
async function open(t: ExecutionContext, options: Partial<AccessOptions> = {}) {
  const registry = new Registry();
  const providers = { rtmp: RTMP } as unknown as ApplicationConfig['providers'];
  const publishers = { webrtc: { maxConnection: 1 }, srt: { maxConnection: 0 } } as ApplicationConfig['publishers'];
  addVhost(registry, { hostNames: ['live.example'], applications: ['app', 'second'], providers, publishers });
  addVhost(registry, { name: 'other', hostNames: ['other.example'], providers, publishers });
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { access, cluster } = await aloneWith(registry, { log, ...options });
  t.teardown(async () => {
    access.close();
    registry.close('the test is over');
    await cluster.close();
  });
  const watch = (more: Partial<PlayRequest> = {}) => access.admitSession(playRequest(more), (output) => output);
  return { registry, access, watch, lines };
}

/** A guard that opens something, and notes why it is closed. */
function told(ends: string[], target = {}): Pick<AccessOptions, 'guards' | 'webhookSessions'> {
  return { guards: [() => async () => ({ target, session: WEBHOOK_SESSION })], webhookSessions: notedSessions(ends) };
}

test('a publisher is let in, and its grant ends once, with its stream', async (t) => {
  const ends: string[] = [];
  const { access, lines } = await open(t, told(ends));
  const grant = await access.admitPublisher(publishRequest());
  t.like(grant, { app: 'app', stream: 'stream', config: RTMP });
  const input = await grant.publish(SOURCE);
  t.is(input.name, 'stream');
  t.deepEqual(ends, []);
  input.close('the publisher left');
  grant.end('again');
  t.deepEqual(ends, ['the publisher left']);
  t.deepEqual(lines, []);
});

test('a publisher whose time is over when it has got its name is refused, and no stream is left', async (t) => {
  const ends: string[] = [];
  const late: Guard = () => async () => ({ until: Date.now() - 1, session: WEBHOOK_SESSION });
  const { access, registry, lines } = await open(t, { guards: [late], webhookSessions: notedSessions(ends) });
  const grant = await access.admitPublisher(publishRequest());
  await t.throwsAsync(grant.publish(SOURCE), { code: 'streamEnded' });
  t.deepEqual(ends, ['its allowed time is over']);
  t.false(registry.vhost('default').application('app').inUse);
  t.is(lines.at(-1)?.msg, 'RTMP publisher refused: The stream was ended before it began');
});

test('a publisher is rejected for each reason; guards that admitted it are notified, and it is logged', async (t) => {
  const ends: string[] = [];
  const { access, registry, lines } = await open(t, told(ends));
  const refuse = async (code: string, more: Partial<ReturnType<typeof publishRequest>>, isAsked = true) => {
    const before = ends.length;
    const publish = async () => await (await access.admitPublisher(publishRequest(more))).publish(SOURCE);
    await t.throwsAsync(publish, { code }, code);
    t.is(ends.length, before + Number(isAsked), code);
    t.is(lines.at(-1)?.remote, `${more.client?.address ?? '192.0.2.1'}:40000`);
    return lines.at(-1)?.msg;
  };
  await refuse('vhostNotFound', { hostName: 'nowhere.example' }, false);
  await refuse('applicationNotFound', { app: 'nothing' });
  await refuse('providerDisabled', { protocol: 'srt' });
  await refuse('streamNameInvalid', { stream: 'a/b' });
  await (await access.admitPublisher(publishRequest())).publish(SOURCE);
  t.is(await refuse('streamExists', {}), 'RTMP publisher refused: Stream already exists');
  await (await access.admitPublisher(publishRequest({ stream: 'second' }))).publish(SOURCE);
  const client = { ...CLIENT, address: '192.0.2.2', realAddress: '192.0.2.2' };
  await refuse('tooManyConnections', { stream: 'third', client });
  registry.draining = true;
  await refuse('nodeDraining', { stream: 'fourth', client }, false);
});

test('a publisher is checked in a handshake against what this node knows, and nothing is made', async (t) => {
  const { access, registry } = await open(t);
  const check = (more: Partial<ReturnType<typeof publishRequest>>) =>
    access.duringHandshake.checkPublisher(publishRequest(more));
  t.notThrows(() => check({}));
  t.throws(() => check({ hostName: 'nowhere.example' }), { code: 'vhostNotFound' });
  t.throws(() => check({ app: 'nothing' }), { code: 'applicationNotFound' });
  t.throws(() => check({ protocol: 'srt' }), { code: 'providerDisabled' });
  t.throws(() => check({ stream: '' }), { code: 'streamNameInvalid' });
  t.throws(() => access.duringHandshake.checkProvider(publishRequest({ app: 'nothing', stream: '' })), {
    code: 'applicationNotFound',
  });
  t.notThrows(() => access.duringHandshake.checkProvider(publishRequest({ stream: '' })));
  await (await access.admitPublisher(publishRequest())).publish(SOURCE);
  t.throws(() => check({}), { code: 'streamExists' });
  registry.draining = true;
  t.throws(() => check({ stream: 'new' }), { code: 'nodeDraining' });
});

test('a guard that has to be asked may send the client elsewhere: a handshake does not refuse it before', async (t) => {
  const target = { hostName: 'other.example', stream: 'moved' };
  const { access, registry } = await open(t, told([], target));
  t.notThrows(() => access.duringHandshake.checkPublisher(publishRequest({ app: 'app', stream: 'a/b' })));
  t.notThrows(() => access.duringHandshake.checkViewer(playRequest({ app: 'nothing' }), () => t.fail()));
  const grant = await access.admitPublisher(publishRequest({ stream: 'a/b' }));
  t.like(grant, { app: 'app', stream: 'moved' });
  t.is(grant.vhost.name, 'other');
  const input = await grant.publish(SOURCE);
  t.is(registry.vhost('other').application('app').stream('moved'), undefined, 'not before its tracks are known');
  input.setTracks([VIDEO]);
  t.is(registry.vhost('other').application('app').stream('moved'), input);
});

test('a redirect of a viewer: host, application, stream and playlist', async (t) => {
  const target = { hostName: 'other.example', app: 'app', stream: 'b', playlist: 'low' };
  const { registry, access } = await open(t, told([], target));
  const input = registry.vhost('other').application('app').publish('b', SOURCE, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = registry.vhost('other').application('app').addOutput(input, 'b');
  output.setTracks([VIDEO]);
  const grant = await access.admitSession(
    playRequest({ app: 'second', stream: 'a', playlist: 'high' }),
    (found) => found,
  );
  t.is(grant.found, output);
  t.like(grant, { stream: 'b', playlist: 'low' });
  const nowhere = await open(t, told([], { hostName: 'nowhere.example' }));
  await t.throwsAsync(nowhere.watch(), { code: 'vhostNotFound' });
});

test('a viewer is rejected for each reason; guards that admitted it are notified', async (t) => {
  const ends: string[] = [];
  const { registry, watch, lines } = await open(t, told(ends));
  const output = goLive(registry, 'app', 'stream');
  const cases: [string, Partial<PlayRequest>][] = [
    ['applicationNotFound', { app: 'nothing' }],
    ['streamNotFound', { protocol: 'thumbnail' }],
    ['streamNotFound', { stream: 'nothing' }],
  ];
  for (const [code, more] of cases) await t.throwsAsync(watch(more), { code });
  t.is(ends.length, cases.length);
  await t.throwsAsync(watch({ hostName: 'nowhere.example' }), { code: 'vhostNotFound' });
  t.is(ends.length, cases.length, 'nobody was asked');
  output.input.kicked.add('bad');
  await t.throwsAsync(watch({ query: new URLSearchParams('session=bad') }), { code: 'sessionRefused' });
  const undo = output.addSession({ id: 'one', kind: 'webrtc' } as never);
  await t.throwsAsync(watch({ protocol: 'srt', query: new URLSearchParams('session=one') }), { code: 'sessionExists' });
  await t.throwsAsync(watch(), { code: 'tooManyConnections' });
  undo();
  t.is((await watch()).found, output);
  const refused = lines.map(({ msg }) => String(msg));
  t.true(refused.every((msg) => / viewer refused: /.test(msg)));
});

test('a viewer who leaves while its stream is looked for elsewhere is not let in', async (t) => {
  const ends: string[] = [];
  const looked = Promise.withResolvers<OutputStream>();
  let lookups = 0;
  const find: FindOutput = () => {
    lookups++;
    return looked.promise;
  };
  const { access, registry, lines } = await open(t, { find, ...told(ends) });
  const left = new AbortController();
  const accepted: OutputStream[] = [];
  const admitted = access.admitSession(playRequest({ stream: 'elsewhere', signal: left.signal }), (output) => {
    accepted.push(output);
    return output;
  });
  await until('it is looked for', () => lookups > 0);
  left.abort();
  looked.resolve(goLive(registry, 'app', 'stream'));
  await t.throwsAsync(admitted, { code: 'clientGone' });
  t.deepEqual([accepted, ends, lines, lookups], [[], ['The client has gone'], [], 1]);
});

test('a viewer who leaves while others are counted is not looked for', async (t) => {
  const counted = Promise.withResolvers<undefined>();
  let counts = 0;
  const { access, registry } = await open(t, {
    guards: [],
    countElsewhere: () => {
      counts++;
      return counted.promise;
    },
  });
  const application = registry.vhost('default').application('app');
  Object.assign(application.config.publishers, { clusterMaxConnection: 1 });
  const left = new AbortController();
  let looks = 0;
  const admitted = access.admitViewer(playRequest({ signal: left.signal }), () => ++looks);
  await until('viewers are counted', () => counts > 0);
  left.abort();
  counted.resolve(undefined);
  await t.throwsAsync(admitted, { code: 'clientGone' });
  t.is(looks, 0);
});

test('a viewer is checked in a handshake against what this node knows', async (t) => {
  const { registry, access } = await open(t);
  const output = goLive(registry, 'app', 'stream');
  const check = (more: Partial<PlayRequest>, look = () => {}) =>
    access.duringHandshake.checkViewer(playRequest(more), look);
  t.notThrows(() => check({}));
  t.notThrows(() => check({ stream: 'elsewhere' }), 'another node may have it');
  t.throws(() => check({ app: 'nothing' }), { code: 'applicationNotFound' });
  t.throws(() => check({ protocol: 'ovt' }), { code: 'streamNotFound' });
  const look = (): never => {
    throw kilnError('fileNotFound');
  };
  t.throws(() => check({}, look), { code: 'fileNotFound' });
  const undo = output.addSession({ id: 'one', kind: 'webrtc' } as never);
  t.throws(() => check({ protocol: 'srt', query: new URLSearchParams('session=one') }), { code: 'sessionExists' });
  t.throws(() => check({}), { code: 'tooManyConnections' });
  undo();
  t.notThrows(() => check({}));
});

test('a viewer that enters while another is admitted is rejected when its session is listed', async (t) => {
  const ends: string[] = [];
  const { registry, watch } = await open(t, told(ends));
  const output = goLive(registry, 'app', 'stream');
  const [one, two] = await Promise.all([watch(), watch()]);
  t.notThrows(() => one.enter());
  output.addSession({ id: one.id, kind: 'webrtc' } as never);
  const full = t.throws(() => two.enter(), { code: 'tooManyConnections' });
  two.refuse(full);
  two.end('again');
  t.deepEqual(ends, [full.message]);
});

test("a publisher's stream ends when its time is over", async (t) => {
  const ends: string[] = [];
  const guard: Guard = () => async () => ({ until: Date.now() + 500, session: WEBHOOK_SESSION });
  const { access } = await open(t, { guards: [guard], webhookSessions: notedSessions(ends) });
  const input = await (await access.admitPublisher(publishRequest())).publish(SOURCE);
  t.false(input.closed);
  await until('it is over', () => input.closed);
  t.deepEqual(ends, ['its allowed time is over']);
});

test('a viewer without a required signature is rejected before it learns what exists', async (t) => {
  const registry = new Registry();
  addVhost(registry, { signedPolicy: { enables: { publishers: 'webrtc' } } as never });
  const { access, cluster } = await aloneWith(registry);
  t.teardown(() => cluster.close());
  goLive(registry, 'app', 'stream');
  for (const more of [{}, { stream: 'nothing' }, { app: 'nothing' }]) {
    await t.throwsAsync(
      access.admitSession(playRequest(more), (output) => output),
      { code: 'accessDenied' },
    );
    t.throws(() => access.duringHandshake.checkViewer(playRequest(more), () => {}), { code: 'accessDenied' });
  }
  t.truthy(await access.admitSession(playRequest({ protocol: 'llhls' }), (output) => output));
});

test('a rejection outside of admission is logged and counted: of a request or of a client, by an error or a text', async (t) => {
  const { access, registry, lines } = await open(t);
  const duplicates: string[] = [];
  registry.on('duplicate', (application, stream) => duplicates.push(`${application}/${stream}`));
  const denial = accessDenied(new Denial('policyExpired', 'the policy has expired'));
  const client = {
    direction: 'outgoing',
    protocol: 'srt',
    address: '192.0.2.7',
    port: 9,
    asked: 'app/stream',
  } as const;
  const behindProxy = { ...CLIENT, address: '192.0.2.9' };
  access.report(publishRequest(), kilnError('streamExists'));
  access.report(playRequest({ playlist: 'low', client: behindProxy }), denial);
  access.report(client, 'the stream id cannot be read');
  access.report(client, 'no handshake', 'tls');
  access.report(client, kilnError('nodeDraining'));
  access.report(publishRequest(), kilnError('clientGone'));
  access.report(client, new Error('a fault'));
  t.deepEqual(
    lines.map(({ msg, remote, asked }) => [msg, remote, asked]),
    [
      ['RTMP publisher refused: Stream already exists', '192.0.2.1:40000', 'live.example/app/stream'],
      ['WebRTC viewer refused: Access denied: the policy has expired', '192.0.2.1', 'live.example/app/stream/low'],
      ['SRT viewer refused: the stream id cannot be read', '192.0.2.7:9', 'app/stream'],
      ['SRT viewer refused: no handshake', '192.0.2.7:9', 'app/stream'],
      [`SRT viewer refused: ${kilnError('nodeDraining').message}`, '192.0.2.7:9', 'app/stream'],
    ],
  );
  t.deepEqual(
    access.refusals.all().map(({ reason }) => reason),
    ['streamExists', 'policyExpired', 'unread', 'tls', 'nodeDraining'],
  );
  t.deepEqual(duplicates, ['#default#app/stream']);
});
