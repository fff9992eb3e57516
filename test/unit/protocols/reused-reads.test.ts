import { once } from 'node:events';
import { createServer as createHttpServer, request, type IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { withReusedReads } from '../../../src/protocols/reused-reads.ts';
import { until } from '../../support/time/until.ts';

/** One connection: its client, the socket that its server goes on with, and what that was given. */
async function accepted(t: ExecutionContext) {
  const server = createServer();
  const given: Buffer[] = [];
  const reads: Buffer[] = [];
  const accepting = new Promise<Socket>((resolve) => {
    server.once('connection', (socket: Socket) =>
      resolve(
        withReusedReads(socket, (data) => {
          given.push(data);
          reads.push(Buffer.from(data));
        }),
      ),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const socket = await accepting;
  t.teardown(() => {
    server.close();
    client.destroy();
    socket.destroy();
  });
  const text = () => Buffer.concat(reads).toString();
  return { server, client, socket, given, text };
}

test('every read of an accepted connection comes in the same memory', async (t) => {
  const { client, given, text } = await accepted(t);
  client.write('one');
  await until('the first', () => text() === 'one');
  client.write('two');
  await until('the second', () => text() === 'onetwo');
  const [first, second] = given;
  t.is(first?.buffer, second?.buffer);
  t.is(first?.byteOffset, second?.byteOffset);
});

test('a connection with reused reads is written to, pauses, and ends as others do', async (t) => {
  const { client, socket, text } = await accepted(t);
  socket.write('hello');
  t.deepEqual(await once(client, 'data'), [Buffer.from('hello')]);
  t.is(socket.remotePort, client.localPort);
  socket.pause();
  client.write('later');
  socket.write('again');
  await once(client, 'data');
  t.is(text(), '');
  socket.resume();
  await until('what came while it paused', () => text() === 'later');
  t.is(socket.bytesRead, 5);
  client.end('last');
  await once(socket, 'end');
  t.is(text(), 'laterlast');
  await once(client, 'close');
});

test('the server waits for no connection with reused reads when it closes', async (t) => {
  const { server } = await accepted(t);
  server.close();
  await once(server, 'close');
  t.false(server.listening);
});

/** An outgoing connection, and its other end. */
type Made = Record<'near' | 'far', Socket>;

/** Ways to make one, by what was received on it before. */
const OUTGOING: Readonly<Record<string, (t: ExecutionContext) => Promise<Made>>> = {
  'that was just made': async (t) => {
    const server = createServer();
    t.teardown(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [[far]] = await Promise.all([once(server, 'connection') as Promise<[Socket]>, once(near, 'connect')]);
    return { near, far };
  },
  'that was upgraded from HTTP': async (t) => {
    const server = createHttpServer();
    t.teardown(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    server.on('upgrade', (_, socket: Socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
    const { port } = server.address() as AddressInfo;
    const asked = request({ port, agent: false, headers: { connection: 'Upgrade', upgrade: 'x' } }).end();
    const [[, far], [, near]] = (await Promise.all([once(server, 'upgrade'), once(asked, 'upgrade')])) as [
      [IncomingMessage, Socket],
      [IncomingMessage, Socket],
    ];
    return { near, far };
  },
};

for (const [name, make] of Object.entries(OUTGOING)) {
  test(`an outgoing connection ${name} reads into the memory of all`, async (t) => {
    const { given: others, client, text: theirs } = await accepted(t);
    const { near, far } = await make(t);
    const given: Buffer[] = [];
    let text = '';
    const socket = withReusedReads(near, (data) => {
      given.push(data);
      text += data.toString();
    });
    t.teardown(() => {
      socket.destroy();
      far.destroy();
    });
    t.not(socket, near);
    for (const word of ['one', 'two']) {
      far.write(word);
      await until(word, () => text.endsWith(word));
    }
    client.write('theirs');
    await until('theirs', () => theirs() === 'theirs');
    t.deepEqual(
      given.map(({ buffer, byteOffset }) => [buffer === others[0]?.buffer, byteOffset]),
      [
        [true, others[0]?.byteOffset],
        [true, others[0]?.byteOffset],
      ],
    );
    socket.write('back');
    t.deepEqual(await once(far, 'data'), [Buffer.from('back')]);
    far.end('last');
    await once(socket, 'close');
    t.is(text, 'onetwolast');
  });
}

test('a connection with bytes that nobody took goes on in its own memory', async (t) => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  t.teardown(() => {
    server.close();
    client.destroy();
    socket.destroy();
  });
  client.write('head body');
  await once(socket, 'readable');
  socket.unshift((socket.read() as Buffer).subarray(5));
  let text = '';
  t.is(
    withReusedReads(socket, (data) => (text += data.toString())),
    socket,
  );
  await until('the rest', () => text === 'body');
  t.is(text, 'body');
});
