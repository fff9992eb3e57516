import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { connect } from 'node:tls';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

/** The first flight of a TLS client, as Node makes it. */
async function clientHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const socket = connect({ socket: near, servername: 'localhost' }).on('error', () => {});
  const [hello] = (await once(far, 'data')) as [Buffer];
  socket.destroy();
  return hello;
}

const HELLO = await clientHello();

/** What is no handshake, or one that is broken. */
export function tlsAttack(random: Random, inside: Buffer): Buffer {
  return random.pick([
    () => mutate(HELLO, random, inside),
    () => inside,
    () => Buffer.concat([HELLO, random.bytes(random.below(500))]),
  ])();
}
