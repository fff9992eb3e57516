import { createHmac } from 'node:crypto';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { ApplicationConfig } from '../../../../src/config/model.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { playRequest, publishRequest } from '../../../support/access/access.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { controlServer, json } from '../../../support/access/control-server.ts';
import { addVhost, goLive, VIDEO } from '../../../support/server/live.ts';
import { until } from '../../../support/time/until.ts';
import { Random } from '../../../soak/random.ts';

const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;
const SECRET = 'of the operator';
const ALL = { providers: 'rtmp,srt,webrtc', publishers: 'webrtc,llhls,thumbnail,srt' };

/** A node whose virtual host `default` asks at these URLs. */
async function open(t: ExecutionContext, controlServerUrl: string, more: object = {}) {
  const registry = new Registry();
  const providers = { rtmp: { maxConnection: 0, blockDuplicateStreamName: true } } as ApplicationConfig['providers'];
  const publishers = {
    webrtc: { maxConnection: 0 },
    llhls: { maxConnection: 0 },
    thumbnail: { maxConnection: 0 },
  } as ApplicationConfig['publishers'];
  const shape = { applications: ['app', 'second'], providers, publishers };
  const admissionWebhooks = {
    controlServerUrl,
    secretKey: SECRET,
    timeout: 20_000,
    recheckInterval: 0,
    enables: ALL,
    ...more,
  };
  addVhost(registry, { ...shape, hostNames: ['live.example'], admissionWebhooks });
  addVhost(registry, { ...shape, name: 'other', hostNames: ['other.example'] });
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { access, cluster, webhooks } = await aloneWith(registry, { log });
  t.teardown(async () => {
    access.close();
    registry.close('the test is over');
    await webhooks.close();
    await cluster.close();
  });
  const publish = async (stream: string) =>
    await (
      await access.admitPublisher(publishRequest({ stream, url: `rtmp://live.example:1935/app/${stream}` }))
    ).publish(SOURCE);
  return { registry, access, webhooks, lines, publish };
}

const said = ({ body }: { readonly body: Buffer }) =>
  JSON.parse(body.toString()) as { request: { status: string; url: string; time: string; new_url?: string } };

test('a server that is asked again ends a session, or gives it another end; one that fails does not', async (t) => {
  const answers = new Map<string, object | undefined>();
  const { url, questions } = await controlServer(t, (response, question) => {
    const { url: asked, status } = said(question).request;
    const answer =
      question.headers['x-kiln-recheck'] === undefined ? undefined : answers.get(asked.split('/').at(-1) ?? '');
    json(status === 'opening' ? (answer ?? { allowed: true }) : {})(response);
  });
  const { publish, webhooks, lines } = await open(t, url, { recheckInterval: 100 });
  const ends: string[] = [];
  const publishing = async (stream: string) => {
    const input = await publish(stream);
    input.once('close', (reason) => ends.push(`${stream}: ${reason}`));
    return input;
  };
  answers.set('broken', { allowed: 'no' });
  answers.set('short', { allowed: true, lifetime: 1 });
  answers.set('moved', { allowed: true, new_url: 'rtmp://live.example:1935/second/other' });
  const goesOn = [await publishing('stream'), await publishing('broken'), await publishing('moved')];
  await publishing('short');
  await until('the time of one is over', () => ends.length > 0);
  t.deepEqual(ends, ['short: its allowed time is over']);
  const again = (stream: string) =>
    questions.filter(({ headers, body }) => headers['x-kiln-recheck'] === 'true' && body.includes(`app/${stream}"`));
  await until('all were asked about often', () =>
    ['stream', 'broken', 'moved'].every((name) => again(name).length > 3),
  );
  t.deepEqual(
    said(again('stream')[0] as never),
    said(questions.find(({ body }) => body.includes('app/stream"')) as never),
  );
  t.false(goesOn.some(({ closed }) => closed));
  await until('faults are logged', () => lines.some(({ msg }) => /without an answer to its recheck/.test(String(msg))));
  t.true(webhooks.counts.recheck.failed > 3);
  answers.set('stream', { allowed: false, reason: 'not paid' });
  await until('it is refused', () => ends.length > 1);
  t.is(ends[1], 'stream: the control server does not allow it any more: not paid');
  t.is(webhooks.refusedAgain, 1);
  await until('its end is told', () =>
    questions.some((question) => said(question).request.status === 'closing' && question.body.includes('app/stream"')),
  );
  const asked = again('stream').length;
  await until('others are asked about', () => again('moved').length > asked + 3);
  t.is(again('stream').length, asked);
});

test('opening and closing name the client and its request, are signed, and come once each', async (t) => {
  const { url, questions, connections } = await controlServer(t, json({ allowed: true }));
  const { access } = await open(t, url);
  const client = { address: '192.0.2.9', port: 7, realAddress: '198.51.100.1', userAgent: 'OBS', localPort: 1935 };
  const grant = await access.admitPublisher(publishRequest({ client }));
  const [opening] = questions;
  t.like(opening, { method: 'POST', url: '/profiles?for=kiln' });
  t.like(opening?.headers, {
    'content-type': 'application/json',
    accept: 'application/json',
    'x-ome-signature': createHmac('sha1', SECRET)
      .update(opening?.body ?? '')
      .digest('base64url'),
  });
  const { time } = said(opening as never).request;
  t.regex(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/);
  const request = { direction: 'incoming', protocol: 'RTMP', url: 'rtmp://live.example:1935/app/stream', time };
  const sender = { address: '192.0.2.9', port: 7, real_ip: '198.51.100.1', user_agent: 'OBS' };
  t.deepEqual<unknown, unknown>(said(opening as never), { client: sender, request: { ...request, status: 'opening' } });
  const input = await grant.publish(SOURCE);
  t.is(questions.length, 1);
  await until('the session has lasted for a moment', () => Date.now() > Date.parse(time));
  const left = Date.now();
  input.close('the publisher left');
  grant.end('again');
  const ended = Date.now();
  await until('the closing', () => questions.length > 1);
  const closing = said(questions[1] as never);
  t.deepEqual<unknown, unknown>(closing, {
    client: sender,
    request: { ...request, status: 'closing', time: closing.request.time },
  });
  const at = Date.parse(closing.request.time);
  t.true(left <= at && at <= ended, closing.request.time);
  t.is(connections(), 1, 'the connection is kept');
});

test('a client is sent to another host, application and stream, which the closing names, and its time is limited', async (t) => {
  const new_url = 'rtmp://other.example:1935/second/renamed';
  const { url, questions } = await controlServer(
    t,
    json({ allowed: true, new_url, lifetime: 60_000, reason: 'moved' }),
  );
  const { access } = await open(t, url);
  const grant = await access.admitPublisher(publishRequest());
  t.like(grant, { app: 'second', stream: 'renamed' });
  t.is(grant.vhost.name, 'other');
  grant.end('over');
  await until('the closing', () => questions.length > 1);
  t.is(said(questions[1] as never).request.new_url, new_url);
  const viewer = access.admitViewer(playRequest(), () => undefined);
  await t.throwsAsync(viewer, { code: 'accessDenied' }, 'no RTMP URL is for WebRTC');
  await until('what it had allowed is closed', () => questions.length === 4);
});

test('a lifetime ends the session', async (t) => {
  const { url, questions } = await controlServer(t, json({ allowed: true, lifetime: 50 }));
  const { publish } = await open(t, url);
  const input = await publish('stream');
  await until('it ends', () => input.closed);
  await until('the closing', () => questions.length === 2);
  t.is(said(questions[1] as never).request.status, 'closing');
});

test('a publisher that a webhook rejects learns no reason; the log has it, and there is no closing', async (t) => {
  const { url, questions } = await controlServer(t, json({ allowed: false, reason: 'not paid' }));
  const { publish, lines, webhooks } = await open(t, url);
  const refused = await t.throwsAsync(publish('stream'), { code: 'accessDenied' });
  t.false(refused?.message.includes('paid'));
  t.is(lines.at(-1)?.msg, 'RTMP publisher refused: Access denied: the control server does not allow it: not paid');
  await webhooks.close();
  t.is(questions.length, 1);
});

test('modules that Enables does not name are not asked about; a thumbnail is one call', async (t) => {
  const { url, questions } = await controlServer(t, json({ allowed: true }));
  const { access, registry, webhooks } = await open(t, url, { enables: { providers: '', publishers: 'Thumbnail' } });
  goLive(registry, 'app', 'stream', [VIDEO]);
  const grant = await access.admitPublisher(publishRequest({ stream: 'more' }));
  grant.end('over');
  t.is(questions.length, 0);
  const viewer = await access.admitViewer(playRequest({ protocol: 'thumbnail' }), () => 'picture');
  viewer.end('sent');
  await webhooks.close();
  t.is(questions.length, 1);
});

test('a closing is sent also when a later check rejects, and when the client has gone in the meantime', async (t) => {
  const gone = new AbortController();
  const { url, questions } = await controlServer(t, (response, question) => {
    if (said(question).request.url.endsWith('gone')) gone.abort();
    json({ allowed: true })(response);
  });
  const { access } = await open(t, url);
  await t.throwsAsync(
    access.admitViewer(playRequest({ stream: 'none' }), () => undefined),
    { code: 'streamNotFound' },
  );
  await until('one closing', () => questions.length === 2);
  const leaving = access.admitViewer(playRequest({ url: 'ws://h/app/gone', signal: gone.signal }), () => 'found');
  await t.throwsAsync(leaving, { code: 'clientGone' });
  await until('the other', () => questions.length === 4);
  t.deepEqual(
    questions.map((question) => said(question).request.status),
    ['opening', 'closing', 'opening', 'closing'],
  );
});

test('a kept connection that ends before an answer is asked anew, and one that ends within an answer is not', async (t) => {
  const begun = { 'content-type': 'application/json', 'content-length': 1000 };
  const { url, questions, connections } = await controlServer(t, (response) => {
    if (questions.length === 2) response.socket?.resetAndDestroy();
    else if (questions.length < 5) json({ allowed: true })(response);
    else response.writeHead(200, begun).write('{', () => response.socket?.resetAndDestroy());
  });
  const { access } = await open(t, url);
  // the third is the second again, on a connection that is not kept
  for (const stream of ['one', 'two', 'three']) await access.admitPublisher(publishRequest({ stream }));
  t.deepEqual([questions.length, connections()], [4, 3]);
  await t.throwsAsync(access.admitPublisher(publishRequest({ stream: 'four' })), { code: 'accessDenied' });
  t.is(questions.length, 5);
});

test('the next control server of a list is asked where one does not answer, not where it refuses', async (t) => {
  const first = await controlServer(t, json({ allowed: false }));
  const second = await controlServer(t, json({ allowed: true }));
  const { publish } = await open(t, `http://127.0.0.1:1/, ${second.url}`);
  (await publish('one')).close('over');
  await until('both calls', () => second.questions.length === 2);
  const strict = await open(t, `${first.url},${second.url}`);
  await t.throwsAsync(strict.publish('two'), { code: 'accessDenied' });
  t.is(first.questions.length, 1);
  t.is(second.questions.length, 2);
});

test('a closing that is not delivered is sent again, to the server that was asked, whatever the virtual host is by then', async (t) => {
  let closings = 0;
  const { url, questions } = await controlServer(t, (response, question) => {
    const isClosing = said(question).request.status === 'closing';
    if (isClosing && closings++ === 0) response.writeHead(503).end();
    else json(isClosing ? 'whatever' : { allowed: true })(response);
  });
  const { publish, registry } = await open(t, url);
  const input = await publish('stream');
  registry.deleteVhost('default', 'it was deleted');
  t.true(input.closed);
  await until('the second attempt', () => questions.length === 3);
  t.is(closings, 2);
  t.deepEqual(questions[2]?.body, questions[1]?.body, 'its time included');
});

test('the closing of a session that another node opened is sent when its virtual host is gone', async (t) => {
  const { url, questions } = await controlServer(t, json({}));
  const { access, registry } = await open(t, url);
  const client = { address: '192.0.2.9', port: 7, real_ip: '192.0.2.9' };
  const call = {
    client,
    protocol: 'LLHLS',
    direction: 'outgoing',
    url: 'http://live.example:80/app/s',
    time: 1,
  } as const;
  const grant = access.adopt({ openings: [{ id: 'elsewhere', vhost: 'default', call }] });
  registry.deleteVhost('default', 'it was deleted');
  grant.end('it was deleted');
  await until('the closing', () => questions.length === 1);
  t.is(said(questions[0] as never).request.status, 'closing');
});

test('200 publishers that come at once are asked about side by side, and a slow answer delays no other', async (t) => {
  const waiting: (() => void)[] = [];
  const { url } = await controlServer(t, (response, question) => {
    const answer = (): void => json({ allowed: true })(response);
    if (said(question).request.url.includes('quick')) answer();
    else waiting.push(answer);
  });
  const { access } = await open(t, url);
  const admit = (n: string) =>
    access.admitPublisher(publishRequest({ stream: n, url: `rtmp://live.example:1935/app/${n}` }));
  const slow = Array.from({ length: 200 }, (_, n) => admit(`slow${n}`));
  await until('all are asked', () => waiting.length === 200);
  await t.notThrowsAsync(admit('quick'));
  for (const answer of waiting) answer();
  await t.notThrowsAsync(Promise.all(slow));
});

test('a dead control server costs a few calls and two lines of the log', async (t) => {
  const sockets = new Set<Socket>();
  let isAlive = false;
  const silent = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', () => isAlive && socket.end('HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"allowed":true}'));
  });
  await new Promise<void>((listening) => void silent.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  const { publish, lines } = await open(t, url, { timeout: 200 });
  const reasons = async (count: number): Promise<number> => {
    const outcomes = await Promise.allSettled(Array.from({ length: count }, (_, n) => publish(`s${n}`)));
    return outcomes.filter(({ status }) => status === 'rejected').length;
  };
  t.is(await reasons(20), 20);
  for (let round = 0; round < 50; round++) t.is(await reasons(20), 20);
  await until('nothing is held', () => sockets.size <= 1);
  const said = (event: string): number => lines.filter((line) => line.event === event).length;
  t.is(said('webhook.unreachable'), 1);
  isAlive = true;
  await until('it is asked again', async () => {
    const input = await publish('back').catch(() => undefined);
    return input !== undefined;
  });
  t.is(said('webhook.reachable'), 1);
  t.is(said('webhook.unreachable'), 1);
});

test('10,000 random wrong answers refuse, in time, and leave nothing', async (t) => {
  t.timeout(300_000);
  const random = new Random(Number(process.env.KILN_SEED ?? 14));
  const sockets = new Set<Socket>();
  const wrong = (): unknown =>
    random.pick([null, 1, 'x', [], {}, { allowed: random.pick(['true', 1, null, [], {}]) }, { allowed: false }]);
  const odd = (): object => ({
    allowed: true,
    ...random.pick<object>([
      { lifetime: 'x' },
      { lifetime: -1 },
      { new_url: 5 },
      { new_url: 'http://a/b' },
      { reason: {} },
    ]),
  });
  const http = (status: string, body: string, length = Buffer.byteLength(body)): string =>
    `HTTP/1.1 ${status}\r\ncontent-length: ${length}\r\n\r\n${body}`;
  const good = JSON.stringify({ allowed: true });
  const kinds: readonly ((socket: Socket) => void)[] = [
    (socket) => socket.end(random.bytes(random.below(200))),
    (socket) => socket.end(http('302 Found\r\nlocation: /', good)),
    (socket) => socket.end(http(random.pick(['201 Created', '204 No', '400 Bad', '500 Error', '101 Switch']), good)),
    (socket) => socket.end(http('200 OK', good.slice(0, random.below(good.length)), good.length)),
    (socket) => socket.end(http('200 OK', JSON.stringify(wrong()))),
    (socket) => socket.end(http('200 OK', JSON.stringify(odd()))),
    (socket) => socket.destroy(),
    (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(random.below(40_000) + 20_000)}\r\n\r\n${good}`),
    (socket) => socket.end(http('200 OK', good.replace('true', random.pick(['True', 'tru', '"true"', 'NaN'])))),
  ];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.once('data', () => {
      // what is slow, or huge, costs the most: it is rarer
      if (random.chance(0.004)) return void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"allowed"');
      if (random.chance(0.004)) return void socket.end(http('200 OK', `{"allowed":true,"x":"${'y'.repeat(2 ** 21)}"}`));
      random.pick(kinds)(socket);
    });
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { access, lines, webhooks } = await open(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    timeout: 500,
  });
  let refused = 0;
  let left = 10_000;
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const error = await access.admitPublisher(publishRequest()).then(
        () => undefined,
        (thrown: { code?: string }) => thrown,
      );
      if (error?.code === 'accessDenied') refused++;
    }
  };
  await Promise.all(Array.from({ length: 64 }, one));
  t.is(refused, 10_000);
  t.false(
    lines.some(({ level }) => Number(level) >= 50),
    'nothing failed',
  );
  await until('no connection is left', () => sockets.size === 0);
  await webhooks.close();
});
