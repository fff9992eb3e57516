import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { statusInfo } from '../../../src/protocols/rtmp/command.ts';
import { publish } from '../../support/tasks/counting-task.ts';
import {
  CODED,
  Feed,
  inState,
  PUSH_NAME,
  pushing,
  reportOf,
  startPush,
  videos,
} from '../../support/pushing/pushing.ts';
import { acceptPublisher, answerRtmp, type Answer } from '../../support/rtmp/rtmp-answers.ts';
import { startRtmp } from '../../support/rtmp/rtmp-server.ts';
import { until } from '../../support/time/until.ts';
import { CertificateFolder, issue } from '../../support/network/x509.ts';

async function listen(t: ExecutionContext, accept: (socket: Socket) => void, allowHalfOpen = false) {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    accept(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

function rtmpServer(t: ExecutionContext, answer: Answer) {
  return listen(t, (socket) => answerRtmp(socket, answer));
}

const md5 = (text: string) => createHash('md5').update(text).digest('base64');

/** What Flash Media Server keeps of the user `user2020` with the password 123456: a salt, and a hash with it. */
const KEPT = { user: 'user2020', salt: '8wsAAA==', hash: 'ICbruj1yNoAtrODdBhFTSQ==' };

/** Lets in whoever answers its challenge, on a connection of its own for each step, as Flash Media Server does. */
function authenticating(apps: string[]): Answer {
  return (wire, command, streamId, socket) => {
    if (command.name !== 'connect') return acceptPublisher(wire, command, streamId, socket);
    const app = String(command.object.app);
    apps.push(app);
    const query = new Map(
      app
        .slice(app.indexOf('?') + 1)
        .split('&')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    );
    const reject = (text: string): void => {
      const info = statusInfo('error', 'NetConnection.Connect.Rejected', `[ AccessManager.Reject ] : ${text}`);
      wire.call('_error', command.transactionId, null, info);
      socket.end();
    };
    if (query.get('user') === undefined) return reject('[ code=403 need auth; authmod=adobe ] : ');
    if (query.get('user') !== KEPT.user) return reject('[ authmod=adobe ] : ?reason=nosuchuser');
    if (query.get('response') === undefined)
      return reject(
        `[ authmod=adobe ] : ?reason=needauth&user=${KEPT.user}&salt=${KEPT.salt}&challenge=KQAAAA==&opaque=KQAAAA==`,
      );
    if (query.get('response') !== md5(`${KEPT.hash}KQAAAA==${query.get('challenge')}`))
      return reject('[ authmod=adobe ] : ?reason=authfailed&opaque=KQAAAA==');
    acceptPublisher(wire, command, streamId, socket);
  };
}

async function live(t: ExecutionContext, push: object = {}) {
  const node = await pushing(t, push);
  return { node, feed: new Feed(await publish(node, 'live'), CODED) };
}

test('a server that asks for a user and a password gets an answer, and the stream', async (t) => {
  const apps: string[] = [];
  const { port } = await rtmpServer(t, authenticating(apps));
  const { node } = await live(t);
  await startPush(node, port, { url: `rtmp://user2020:123456@127.0.0.1:${port}/app` });
  t.is((await inState(node, 'pushing')).sequence, 1);
  t.deepEqual(apps.slice(0, 2), ['app', 'app?authmod=adobe&user=user2020']);
  t.is(apps.length, 3);
  t.false(apps.join().includes('123456') || node.lines.join('').includes('123456'));
});

for (const [what, credentials, reason] of [
  ['a wrong password', 'user2020:wrong@', /^the server rejected the user or the password$/],
  ['an unknown user', 'other:123456@', /^the server rejected the user or the password$/],
  ['no password', '', /^the server asks for a user and a password/],
] as const)
  test(`a push with ${what} ends in an error that names the reason`, async (t) => {
    const { port } = await rtmpServer(t, authenticating([]));
    const { node } = await live(t);
    await startPush(node, port, { url: `rtmp://${credentials}127.0.0.1:${port}/app` });
    t.regex((await inState(node, 'error')).reason ?? '', reason);
  });

test.serial('over TLS a server with a valid certificate gets the stream, and no other server anything', async (t) => {
  const authority = issue('authority', { authority: true });
  const known = getCACertificates('default');
  setDefaultCACertificates([...known, authority.cert]);
  t.teardown(() => setDefaultCACertificates(known));
  const folder = new CertificateFolder(t);
  const serve = async (file: string, issued: ReturnType<typeof issue>) => {
    const certificates = new CertificateStore({ folder: folder.path, log: pino({ level: 'silent' }) });
    await certificates.load({ name: 'default', host: { names: ['*'], tls: folder.write(file, issued) } });
    const server = await startRtmp({ certificates });
    t.teardown(() => server.close());
    return server;
  };
  const good = await serve('good', issue('localhost', { issuer: authority }));
  const { node, feed } = await live(t);
  await startPush(node, 0, { url: `rtmps://localhost:${good.tlsPort}/app` });
  feed.write(150);
  await until('it has arrived', () => (good.recordings[0]?.packets.length ?? 0) > 0);
  t.true(await node.everywhere.remove(PUSH_NAME));

  const selfSigned = await serve('self', issue('localhost'));
  await startPush(node, 0, { url: `rtmps://localhost:${selfSigned.tlsPort}/app` });
  t.is((await inState(node, 'error')).reason, 'the TLS connection failed: self-signed certificate');
  t.is(selfSigned.recordings.length, 0);
  t.true(await node.everywhere.remove(PUSH_NAME));

  const other = await serve('other', issue('other.example', { issuer: authority }));
  await startPush(node, 0, { url: `rtmps://localhost:${other.tlsPort}/app` });
  t.regex((await inState(node, 'error')).reason ?? '', /^the TLS connection failed: .*localhost/);
  t.true(await node.everywhere.remove(PUSH_NAME));

  await startPush(node, 0, { url: `rtmps://localhost:${good.port}/app` });
  t.regex((await inState(node, 'error')).reason ?? '', /^the TLS connection failed: /);
});

for (const [what, answer, reason] of [
  [
    'refuses connect',
    (wire, { name, transactionId }) =>
      name === 'connect' && wire.call('_error', transactionId, null, statusInfo('error', 'Rejected', 'not here')),
    'the server refused connect: "not here, Rejected"',
  ],
  [
    'has a publisher of that name',
    (wire, command, streamId, socket) =>
      command.name === 'publish'
        ? wire.status(streamId, statusInfo('error', 'NetStream.Publish.BadName', 'very-secret-key is in use'))
        : acceptPublisher(wire, command, streamId, socket),
    'the server ended the stream: "... is in use, NetStream.Publish.BadName"',
  ],
  [
    'closes the connection',
    (_wire, _command, _streamId, socket) => socket.end(),
    'the other side closed the connection',
  ],
] as const satisfies readonly (readonly [string, (...of: Parameters<Answer>) => unknown, string])[])
  test(`a server that ${what} is an error that names the reason`, async (t) => {
    const { port } = await rtmpServer(t, answer);
    const { node } = await live(t);
    await startPush(node, port);
    t.is((await inState(node, 'error')).reason, reason);
  });

test('a server that sends something else than RTMP is an error', async (t) => {
  const { port } = await listen(t, (socket) => socket.resume().write('HTTP/1.1 400 Bad Request\r\n\r\n'));
  const { node } = await live(t);
  await startPush(node, port);
  t.is((await inState(node, 'error')).reason, 'the server does not speak RTMP');
});

test('a server that breaks the protocol after it took the stream is an error, and gets it again', async (t) => {
  let count = 0;
  const { port } = await rtmpServer(t, (wire, command, streamId, socket) => {
    acceptPublisher(wire, command, streamId, socket);
    // a message of a chunk stream that has not begun
    if (command.name === 'publish' && count++ === 0) socket.write(Buffer.alloc(64, 0xff));
  });
  const { node } = await live(t);
  await startPush(node, port);
  const again = await until('it is pushed again', () => reportOf(node)?.sequence === 2 && reportOf(node));
  t.is(again.state, 'pushing');
  t.true(node.lines.some((line) => line.includes('push.failed')));
});

test('a destination that takes the stream and never reads is given up', async (t) => {
  const { port } = await listen(t, (socket) => socket.pause());
  const { node, feed } = await live(t, { sendTimeout: 300 });
  await startPush(node, 0, { protocol: 'mpegts', url: `tcp://127.0.0.1:${port}` });
  await inState(node, 'pushing');
  const data = Buffer.alloc(256 * 1024, 1);
  // one slice, and nothing else
  data.writeUInt32BE(data.length - 4);
  const { reason } = await until('it is given up', () => {
    // more and more, until the system keeps no more for it
    for (const packet of videos(feed.packets)) feed.output.write({ ...packet, data });
    const report = reportOf(node);
    return report?.state === 'error' && report;
  });
  t.is(reason, 'the other side took nothing for 300 ms');
});

test('a destination that has closed its half of the connection is an error', async (t) => {
  const { port } = await listen(t, (socket) => socket.resume().end(), true);
  const { node } = await live(t);
  await startPush(node, 0, { protocol: 'mpegts', url: `tcp://127.0.0.1:${port}` });
  t.is((await inState(node, 'error')).reason, 'the other side closed the connection');
});

test('a push whose server never answers is stopped at once', async (t) => {
  const { port, sockets } = await listen(t, (socket) => socket.resume());
  const { node } = await live(t, { connectionTimeout: 600_000 });
  await startPush(node, port);
  await until('it is connecting', () => sockets.size > 0 && reportOf(node)?.state === 'connecting');
  t.true(await node.everywhere.remove(PUSH_NAME));
  await until('the connection is closed', () => sockets.size === 0);
});

test('a server that goes on talking after the end of a push is left all the same', async (t) => {
  const { port, sockets } = await listen(
    t,
    (socket) => {
      const timer = setInterval(() => socket.write('more'), 20);
      socket.resume().on('close', () => clearInterval(timer));
    },
    true,
  );
  const { node } = await live(t, { sendTimeout: 300 });
  await startPush(node, 0, { protocol: 'mpegts', url: `tcp://127.0.0.1:${port}` });
  await inState(node, 'pushing');
  t.true(await node.everywhere.remove(PUSH_NAME));
  await until('the connection is closed', () => sockets.size === 0);
});
