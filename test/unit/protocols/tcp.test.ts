import { once } from 'node:events';
import { BlockList, connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { listenTcp, type AcceptOptions, type Peer } from '../../../src/protocols/tcp.ts';

const V1 = Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 55555 1935\r\n');
const V2 = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb007107c0000201d903078f', 'hex');
const V2_LOCAL = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex');
const CLIENT: Peer = { remoteAddress: '203.0.113.7', remotePort: 55_555, localAddress: '192.0.2.1', localPort: 1935 };

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
const elsewhere = new BlockList();
elsewhere.addSubnet('10.0.0.0', 8);

interface Handed {
  socket: Socket;
  peer: Peer;
}

/** A listener that collects what it is handed, and a client's connection to it. */
async function open(t: ExecutionContext, options: AcceptOptions, host = '127.0.0.1') {
  const handed: Handed[] = [];
  let tell: () => void;
  const first = new Promise<void>((resolve) => (tell = resolve));
  const listener = await listenTcp({ host, port: 0, ...options }, (socket, peer) => {
    socket.on('error', () => {});
    handed.push({ socket, peer });
    tell();
  });
  const client = connect({ host, port: listener.port, allowHalfOpen: true });
  client.on('error', () => {});
  await once(client, 'connect');
  t.teardown(async () => {
    client.destroy();
    for (const { socket } of handed) socket.destroy();
    await listener.close();
  });
  const handover = async (): Promise<Handed> => {
    await first;
    return handed[0] as Handed;
  };
  return { listener, client, handed, handover };
}

async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** The server has ended or reset the connection. */
function isClosed(client: Socket): Promise<true> {
  client.resume();
  return new Promise((resolve) => {
    client.once('end', () => resolve(true));
    client.once('close', () => resolve(true));
  });
}

test('a connection from outside the proxy networks is handed over untouched', async (t) => {
  for (const proxyNetworks of [undefined, elsewhere]) {
    const { client, handover, listener } = await open(t, { proxyNetworks });
    const { socket, peer } = await handover();
    t.deepEqual(peer, {
      remoteAddress: '127.0.0.1',
      remotePort: client.localPort as number,
      localAddress: '127.0.0.1',
      localPort: listener.port,
    });
    client.end(V1);
    t.is(await readAll(socket), V1.toString(), "a header that nobody asked for is the client's data");
  }
});

for (const [name, header, expected] of [
  ['version 1', V1, CLIENT],
  ['version 2', V2, CLIENT],
  ['version 2 local', V2_LOCAL, undefined],
] as const) {
  test(`${name}: in one piece with the data`, async (t) => {
    const { client, handover } = await open(t, { proxyNetworks: loopback });
    client.end(Buffer.concat([header, Buffer.from('hello')]));
    const { socket, peer } = await handover();
    if (expected === undefined) t.is(peer.remotePort, client.localPort as number);
    else t.deepEqual(peer, expected);
    t.is(await readAll(socket), 'hello');
  });

  test(`${name}: byte by byte, the data read by a data listener`, async (t) => {
    const { client, handover } = await open(t, { proxyNetworks: loopback });
    client.setNoDelay(true);
    const bytes = Buffer.concat([header, Buffer.from('hel')]);
    for (const byte of bytes) {
      client.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    const { socket } = await handover();
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    client.end('lo');
    await once(socket, 'end');
    t.is(text, 'hello');
  });
}

test('much data behind the header arrives whole and in order', async (t) => {
  const { client, handover } = await open(t, { proxyNetworks: loopback });
  const data = Buffer.alloc(3_000_000);
  for (let i = 0; i < data.length; i += 4) data.writeUInt32BE(i, i);
  client.end(Buffer.concat([V2, data]));
  const { socket } = await handover();
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  t.true(Buffer.concat(chunks).equals(data));
});

test('the handed over socket answers, and without data waits', async (t) => {
  const { client, handover } = await open(t, { proxyNetworks: loopback });
  client.write(V1);
  const { socket } = await handover();
  socket.write('first');
  const [answer] = await once(client, 'data');
  t.is(answer.toString(), 'first');
  client.end('late');
  t.is(await readAll(socket), 'late');
});

test('a proxy without a header, or with a malformed one, is cut off', async (t) => {
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', 'PROXY TCP4 nonsense\r\n']) {
    const { client, handed } = await open(t, { proxyNetworks: loopback });
    client.write(bytes);
    t.true(await isClosed(client));
    t.is(handed.length, 0);
  }
});

test('a proxy that may leave the header out is known with it and without', async (t) => {
  const options = { proxyNetworks: loopback, headerless: loopback };
  for (const [bytes, address] of [
    [V1, '203.0.113.7'],
    [V2, '203.0.113.7'],
    [Buffer.alloc(0), '127.0.0.1'],
  ] as const) {
    const { client, handover } = await open(t, options);
    for (const byte of Buffer.concat([bytes, Buffer.from('PUT / HTTP/1.1')])) client.write(Buffer.of(byte));
    client.end();
    const { socket, peer } = await handover();
    t.is(peer.remoteAddress, address);
    t.is(await readAll(socket), 'PUT / HTTP/1.1');
  }
  const { client, handed } = await open(t, options);
  client.write('PROXY TCP4 nonsense\r\n');
  t.true(await isClosed(client), 'a malformed header is refused all the same');
  t.is(handed.length, 0);
});

test('a proxy that may leave the header out may also be silent', async (t) => {
  const { client, handover } = await open(t, { proxyNetworks: loopback, headerless: loopback });
  t.is((await handover()).peer.remoteAddress, '127.0.0.1');
  t.false(client.destroyed);
});

test('a proxy that ends before its header is complete is dropped', async (t) => {
  const { client, handed } = await open(t, { proxyNetworks: loopback });
  client.end('PROXY TCP4 ');
  t.true(await isClosed(client));
  t.is(handed.length, 0);
});

test('a proxy that stays silent is cut off in time', async (t) => {
  const { client, handed } = await open(t, { proxyNetworks: loopback });
  client.write('PROXY');
  t.true(await isClosed(client));
  t.is(handed.length, 0);
});

test('closing stops accepting, drops what waits for a header, keeps what was handed over', async (t) => {
  // nobody else listens there when it does not any more
  const host = '127.0.18.7';
  const { client, listener, handover } = await open(t, { proxyNetworks: loopback }, host);
  client.write(V1);
  const { socket } = await handover();
  const waiting = connect(listener.port, host);
  waiting.on('error', () => {});
  await once(waiting, 'connect');
  waiting.write('PROXY ');
  await new Promise(setImmediate);
  await listener.close();
  await listener.close();
  t.true(await isClosed(waiting));
  await t.throwsAsync(once(connect(listener.port, host), 'connect'), { code: 'ECONNREFUSED' });
  client.end('still here');
  t.is(await readAll(socket), 'still here');
});

test('a port that is taken rejects', async (t) => {
  const { listener } = await open(t, {});
  await t.throwsAsync(
    listenTcp({ host: '127.0.0.1', port: listener.port }, (socket) => socket.destroy()),
    {
      code: 'EADDRINUSE',
    },
  );
});
