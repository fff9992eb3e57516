import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Below those that systems give to outgoing connections: one of these would be in the way of a server to come. */
const FIRST = 12_000;
const COUNT = 20_000;

/** What this process was given already: a server may not listen there yet. */
const given = new Set<number>();

/** Ports that were free, for TCP and UDP both, a moment ago: all held at once, so that none comes twice. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; release: () => Promise<unknown> }[] = [];
  while (held.length < count) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer();
    const listens = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '0.0.0.0', () => resolve(true));
    });
    if (!listens) continue;
    const socket = createSocket('udp4');
    const bound = await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false)).bind(port, '0.0.0.0', () => resolve(true));
    });
    const release = async () => {
      await new Promise((resolve) => server.close(resolve));
      if (bound) await new Promise<void>((resolve) => socket.close(resolve));
    };
    if (bound) held.push({ port, release });
    else await release();
  }
  await Promise.all(held.map(({ release }) => release()));
  return held.map(({ port }) => port);
}
