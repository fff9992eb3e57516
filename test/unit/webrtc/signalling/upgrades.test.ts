import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import test from 'ava';
import { Upgrades } from '../../../../src/webrtc/signalling/upgrades.ts';
import { until } from '../../../support/time/until.ts';

test('a connection that is refused is let go of, whatever its client does', async (t) => {
  const server = createServer();
  const upgrades = new Upgrades(undefined, { report: () => {} });
  upgrades.attach(server, () => t.fail());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.teardown(() => {
    upgrades.close();
    server.close();
  });
  const request = 'GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const polite = connect({ port, host: '127.0.0.1' });
  polite.write(request);
  t.regex(await text(polite), /^HTTP\/1\.1 404 Not Found\r\n/);
  // goes on sending, and keeps its own side open
  const clients = [request + 'x', request + 'x'.repeat(100_000)].map((bytes) => {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
    client.write(bytes);
    return client;
  });
  t.teardown(() => clients.forEach((client) => client.destroy()));
  await Promise.all(clients.map((client) => once(client.resume(), 'data').catch(() => 'reset')));
  const open = promisify(server.getConnections.bind(server));
  await until('nobody is connected', async () => (await open()) === 0);
  t.is(await open(), 0);
});
