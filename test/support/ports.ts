import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo } from 'node:net';

/** Ports that were free, for TCP and UDP both, a moment ago: all held at once, so that none comes twice. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; release: () => Promise<unknown> }[] = [];
  while (held.length < count) {
    const server = createServer();
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '0.0.0.0', resolve));
    const { port } = server.address() as AddressInfo;
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
