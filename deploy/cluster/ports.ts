import { createServer, type AddressInfo } from 'node:net';

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
    return { rtmp: base + 35, http: base + 33, ovt: base + 90, srt: base + 99, srtPlay: base + 98, api: base + 81, node: base + 46, ice: base + 10 };
  });
  return { redis: 20_079, turn: 3478, balancer: { rtmp: 1935, http: 3333, ovt: 9000, api: 8081 }, nodes };
}

/** Ports that were free a moment ago, no two the same. */
export async function freePorts(count: number): Promise<ClusterPorts> {
  const held = await Promise.all(Array.from({ length: SHARED + PER_NODE * count }, async () => {
    const server = createServer();
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return server;
  }));
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  const take = (): number => ports.pop() as number;
  const nodes = Array.from({ length: count }, () => ({
    rtmp: take(), http: take(), ovt: take(), srt: take(), srtPlay: take(), api: take(), node: take(), ice: take(),
  }));
  return { redis: take(), turn: take(), balancer: { rtmp: take(), http: take(), ovt: take(), api: take() }, nodes };
}
