import { existsSync, readFileSync } from 'node:fs';

/** Ports of a node; `ice` is for UDP and TCP. */
export interface NodePorts {
  readonly rtmp: number;
  readonly http: number;
  readonly ovt: number;
  /** UDP: SRT in, and SRT out. */
  readonly srt: number;
  readonly srtPlay: number;
  readonly api: number;
  /** Port for calls between nodes. */
  readonly node: number;
  readonly ice: number;
}

export interface ClusterPorts {
  readonly redis: number;
  readonly turn: number;
  readonly balancer: Pick<NodePorts, 'rtmp' | 'http' | 'ovt' | 'api'>;
  readonly nodes: readonly NodePorts[];
}

const PER_NODE = 8;
const SHARED = 6;

/** The balancer has the default ports; node n has 20n35, 20n33, 20n90, 20n99, 20n98, 20n81, 20n46 and 20n10. */
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
 * Below the ports that systems and media workers choose by themselves, which would conflict until all listen. Above those that
 * `fetch` and browsers refuse (the last is 6697).
 */
const FIRST = 7000;
const COUNT = 3000;
const MOST_TRIES = 100_000;

/** A line of /proc/net (proc_pid_net(5)): number, local address and port, remote ones, state, all in hexadecimal. */
const LISTENING = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} (?:0A|07) /;

/** Free ports, no two the same. */
export function freePorts(count: number): ClusterPorts {
  const ports = unusedPorts(SHARED + PER_NODE * count, () => FIRST + Math.floor(Math.random() * COUNT));
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
 * Ports that no socket of this machine listens on, by TCP or UDP, no two the same. None is bound to find out: a child process
 * that another thread starts at that moment would keep the port until it becomes its program.
 * @param candidate next port to try; undefined is one that must not be used
 * @throws Error when there are not enough
 */
export function unusedPorts(count: number, candidate: () => number | undefined): number[] {
  const used = portsInUse();
  const found = new Set<number>();
  for (let tries = 0; found.size < count && tries < MOST_TRIES; tries++) {
    const port = candidate();
    if (port !== undefined && !used.has(port)) found.add(port);
  }
  if (found.size < count) throw new Error(`${count} free ports are wanted, ${found.size} were found`);
  return [...found];
}

/** Ports on which sockets of this machine listen, and all ports of UDP sockets. */
export function portsInUse(): Set<number> {
  const tables = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`).filter(existsSync);
  const lines = tables.flatMap((table) => readFileSync(table, 'latin1').split('\n'));
  return new Set(
    lines.flatMap((line) => (LISTENING.exec(line) ?? []).slice(1)).map((port) => Number.parseInt(port, 16)),
  );
}
