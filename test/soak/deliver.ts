import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from './random.ts';

const PATIENCE_MS = 400;
const MAX_DRIBBLES = 40;

type Manner = (socket: Socket, bytes: Buffer, random: Random) => Promise<void> | void;

const burst: Manner = (socket, bytes) => void socket.write(bytes);

const pieces: Manner = async (socket, bytes, random) => {
  for (let at = 0; at < bytes.length && !socket.destroyed;) {
    const size = 1 + random.below(3000);
    socket.write(bytes.subarray(at, at + size));
    at += size;
    // a connection that breaks here is one that is closed
    if (socket.writableNeedDrain)
      await Promise.race([once(socket, 'drain').catch(() => {}), closed(socket), delay(PATIENCE_MS)]);
  }
};

const dribble: Manner = async (socket, bytes, random) => {
  const start = random.below(bytes.length);
  socket.write(bytes.subarray(0, start));
  for (let i = 0; i < MAX_DRIBBLES && !socket.destroyed; i++) {
    await delay(random.below(10));
    socket.write(bytes.subarray(start + i, start + i + 1));
  }
};

const reset: Manner = async (socket, bytes, random) => {
  socket.write(bytes.subarray(0, random.below(bytes.length)));
  await delay(random.below(30));
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};

const deaf: Manner = async (socket, bytes) => {
  socket.pause();
  socket.write(bytes);
  await delay(PATIENCE_MS / 2);
};

/** By how often each is chosen. */
const MANNERS: readonly Manner[] = [burst, burst, burst, burst, pieces, pieces, dribble, reset, deaf];

/** Sends bytes over a connection of its own, in one of the ways in which clients do, and leaves. */
export function deliver(port: number, bytes: Buffer, random: Random): Promise<void> {
  return send(connect(port, '127.0.0.1'), bytes, random);
}

/** The same inside of TLS. */
export function deliverSecurely(port: number, bytes: Buffer, random: Random): Promise<void> {
  return send(
    connectTls({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }),
    bytes,
    random,
  );
}

async function send(socket: Socket, bytes: Buffer, random: Random): Promise<void> {
  // the server may close whenever it likes
  socket.on('error', () => {}).resume();
  const gone = closed(socket);
  await Promise.race([once(socket, socket instanceof TLSSocket ? 'secureConnect' : 'connect').catch(() => {}), gone]);
  await random.pick(MANNERS)(socket, bytes.length > 0 ? bytes : Buffer.of(0), random);
  await Promise.race([gone, delay(random.below(60))]);
  if (random.chance(0.7)) {
    socket.end();
    await Promise.race([gone, delay(PATIENCE_MS)]);
  }
  socket.destroy();
  await gone;
}

/** Sends datagrams to a port. */
export async function deliverDatagrams(port: number, datagrams: readonly Buffer[]): Promise<void> {
  const socket = createSocket('udp4');
  await Promise.all(
    datagrams.map(
      (datagram) =>
        new Promise<void>((sent) => {
          socket.send(datagram, port, '127.0.0.1', () => sent());
        }),
    ),
  );
  socket.close();
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
