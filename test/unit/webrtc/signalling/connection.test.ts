import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { WebSocket, WebSocketServer } from 'ws';
import { CLIENT } from '../../../support/access/access.ts';
import { createLogger } from '../../../../src/log/log.ts';
import { SignallingConnection } from '../../../../src/webrtc/signalling/connection.ts';

test('a player that asks and never reads is cut off', async (t) => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.close());
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.teardown(() => client.terminate());
  const [[socket]] = (await Promise.all([once(server, 'connection'), once(client, 'open')])) as [[WebSocket], unknown];
  const request = {
    hostName: 'x',
    origin: 'ws://x',
    app: 'app',
    stream: 'stream',
    url: 'ws://x:3333/app/stream?direction=send',
    client: CLIENT,
    query: new URLSearchParams('direction=send'),
  };
  new SignallingConnection({
    socket,
    request,
    handler: undefined,
    onUnavailable: () => {},
    log: createLogger('silent'),
  });
  client.pause();
  socket.send(Buffer.alloc(32 * 1024 * 1024));
  client.send('{"command":"request_offer"}');
  const [code] = await once(socket, 'close');
  t.is(code, 1006);
});
