import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import test from 'ava';
import { isReachable } from '../../../cluster/peer/reachable.ts';
import { freePorts } from '../../support/network/ports.ts';

test('a port that accepts connections is reachable, though none is read; one that refuses is not', async (t) => {
  const sockets: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => sockets.push(socket));
  const [port = 0] = freePorts(1);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.true(await isReachable(`http://127.0.0.1:${port}`, 5000));
  t.true(await isReachable(`https://127.0.0.1:${port}`, 5000));
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  t.false(await isReachable(`http://127.0.0.1:${port}`, 300));
});

test('a port that accepts connections again in time is reachable', async (t) => {
  const server = createServer();
  const [port = 0] = freePorts(1);
  const reachable = isReachable(`http://127.0.0.1:${port}`, 8000);
  await once(connect(port, '127.0.0.1'), 'error');
  server.listen(port, '127.0.0.1');
  t.true(await reachable);
  server.close();
});

test('an address that does not answer is not reachable', async (t) => {
  // of TEST-NET-1 (RFC 5737): nobody has it
  t.false(await isReachable('http://192.0.2.1:9', 300));
});
