import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** What a node listens on; `ice` for UDP and TCP. */
export interface NodePorts {
  readonly rtmp: number;
  readonly http: number;
  readonly ovt: number;
  /** UDP: SRT in, and SRT out. */
  readonly srt: number;
  readonly srtPlay: number;
  readonly api: number;
  /** The cluster port: nodes call each other there. */
  readonly node: number;
  readonly ice: number;
}

export interface ClusterPorts {
  readonly redis: number;
  /** The relay. */
  readonly turn: number;
  readonly balancer: Pick<NodePorts, 'rtmp' | 'http' | 'ovt' | 'api'>;
  readonly nodes: readonly NodePorts[];
}

const PER_NODE = 8;
const SHARED = 6;

/** The balancer has the ports of a node that is alone; node n has 20n35, 20n33, 20n90, 20n99, 20n98, 20n81, 20n46 and 20n10. */
export function fixedPorts(count: number): ClusterPorts {
  const nodes = Array.from({ length: count }, (_, index) => {
    const base = 20_000 + 100 * (index + 1);
    return {
      rtmp: base + 35,
      http: base + 33,
      ovt: base + 90,
      srt: base + 99,
      srtPlay: base + 98,
      api: base + 81,
      node: base + 46,
      ice: base + 10,
    };
  });
  return { redis: 20_079, turn: 3478, balancer: { rtmp: 1935, http: 3333, ovt: 9000, api: 8081 }, nodes };
}

/**
 * Below those that systems, and media workers, take by themselves: until all listen, one of these would be in the way.
 * Above those that `fetch` and browsers refuse (the last is 6697).
 */
const FIRST = 7000;
const COUNT = 3000;
const MOST_TRIES = 100_000;

/** Ports that were free a moment ago, no two the same. */
export async function freePorts(count: number): Promise<ClusterPorts> {
  const ports = await unusedPorts(SHARED + PER_NODE * count, () => FIRST + Math.floor(Math.random() * COUNT));
  const take = (): number => ports.pop() as number;
  const nodes = Array.from({ length: count }, () => ({
    rtmp: take(),
    http: take(),
    ovt: take(),
    srt: take(),
    srtPlay: take(),
    api: take(),
    node: take(),
    ice: take(),
  }));
  return { redis: take(), turn: take(), balancer: { rtmp: take(), http: take(), ovt: take(), api: take() }, nodes };
}

/**
 * Ports that were free, for TCP and UDP both, a moment ago: all held at once, so that none comes twice.
 * @param candidate the next one to try; undefined is one that may not be had
 * @throws Error when there are not so many
 */
export async function unusedPorts(count: number, candidate: () => number | undefined): Promise<number[]> {
  const held: { port: number; release: () => Promise<unknown> }[] = [];
  for (let tries = 0; held.length < count && tries < MOST_TRIES; tries++) {
    const port = candidate();
    if (port === undefined) continue;
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
  if (held.length < count) throw new Error(`${count} free ports are wanted, ${held.length} were found`);
  return held.map(({ port }) => port);
}
