import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { oneCall } from './one-call.ts';
import type { Random } from './random.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const NAMES = 64;
/** What plays is left to play for so long at most. */
const PLAY_MS = 300;
const CREATED = 201;

/**
 * Lets the server pull from an origin that is there for this once.
 * @param urlAt what is asked for, of an origin at a port
 * @param converse speaks for the origin on each connection
 */
export async function pullFrom(
  kiln: Kiln,
  random: Random,
  urlAt: (port: number) => string,
  converse: (socket: Socket) => void,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    converse(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const name = `hostile${random.below(NAMES)}`;
  const urls = [urlAt((server.address() as AddressInfo).port)];
  const status = await oneCall(kiln, 'POST', STREAMS, { name, urls, properties: { relay: random.chance(0.5) } });
  if (status === CREATED) {
    await delay(random.below(PLAY_MS));
    await oneCall(kiln, 'DELETE', `${STREAMS}/${name}`);
  }
  for (const socket of sockets) socket.destroy();
  server.close();
}
