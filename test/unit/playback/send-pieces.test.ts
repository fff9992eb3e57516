import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { goneSignal } from '../../../src/access/http-request.ts';
import { sendPieces } from '../../../src/playback/send-pieces.ts';
import { until } from '../../support/time/until.ts';

const PIECE = Buffer.alloc(256 * 1024, 7);

async function serve(t: ExecutionContext, onRequest: (response: ServerResponse) => void): Promise<number> {
  const server = createServer((_request, response) => onRequest(response));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('all pieces are sent, and counted', async (t) => {
  let sent = 0;
  const port = await serve(t, (response) => {
    async function* pieces() {
      for (let index = 0; index < 8; index++) yield PIECE;
    }
    sendPieces(response, pieces(), goneSignal(response), (bytes) => (sent += bytes)).catch(t.log);
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  t.is((await answer.arrayBuffer()).byteLength, 8 * PIECE.length);
  t.is(sent, 8 * PIECE.length);
});

test('a client that reads nothing holds few pieces, and none is read after it has left', async (t) => {
  let read = 0;
  let isOver = false;
  let held = 0;
  let outcome: unknown;
  const port = await serve(t, (response) => {
    async function* pieces() {
      try {
        for (;;) {
          read++;
          held = Math.max(held, response.writableLength);
          yield PIECE;
        }
      } finally {
        isOver = true;
      }
    }
    sendPieces(response, pieces(), goneSignal(response), () => {}).catch((error: unknown) => (outcome = error));
  });
  const client = connect(port, '127.0.0.1');
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  let before = -1;
  await until('the client has filled what the system buffers', async () => {
    const isFull = read > 1 && read === before;
    before = read;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return isFull;
  });
  t.true(held < 2 * PIECE.length, `${held} bytes`);
  client.destroy();
  await until('it is noticed', async () => isOver);
  t.like(outcome, { code: 'clientGone' });
});
