import { lookup } from 'node:dns/promises';
import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeRow } from '#cluster';
import { PullError } from './error.ts';

const LOOKUP_MS = 3000;

/** Addresses that are of a link, of everybody or of nobody: no origin is there. */
const UNPULLABLE = new BlockList();
for (const [network, prefix] of [['0.0.0.0', 8], ['169.254.0.0', 16], ['224.0.0.0', 4], ['240.0.0.0', 4]] as const) {
  UNPULLABLE.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [['fe80::', 10], ['ff00::', 8]] as const) UNPULLABLE.addSubnet(network, prefix, 'ipv6');
UNPULLABLE.addAddress('::', 'ipv6');

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

export interface PullGuardOptions {
  readonly nodes: () => readonly NodeRow[];
  /** TCP ports of this server and its store, but for those that streams are pulled from. */
  readonly ports: ReadonlySet<number>;
  /** Hosts on which these ports are out of bounds, besides this machine and the other nodes. */
  readonly hosts: ReadonlySet<string>;
}

/** Keeps pulls from what strangers must not reach through this server: the cluster's own ports, and its links. */
export class PullGuard {
  readonly #options: PullGuardOptions;

  constructor(options: PullGuardOptions) {
    this.#options = options;
  }

  /**
   * The addresses of a host that may be connected to, in the order of preference. What is connected to is one of them,
   * and not what the name says a moment later.
   * @throws PullError when there is none
   */
  async addresses(host: string, port: number): Promise<string[]> {
    const nodes = this.#options.nodes().map(addressOf);
    const isOwnPort = this.#options.ports.has(port) || nodes.some((node) => node?.port === port);
    const found = await resolve(host);
    const own = new Set([...this.#options.hosts, ...nodes.flatMap((node) => node?.host ?? []), ...interfaces()]);
    const allowed = found.filter((address) => {
      if (contains(UNPULLABLE, address)) return false;
      return !isOwnPort || !(contains(LOOPBACK, address) || own.has(address) || own.has(host));
    });
    if (allowed.length === 0) throw new PullError(`nothing is pulled from ${host}:${port}`);
    return allowed;
  }
}

/** @throws PullError */
async function resolve(host: string): Promise<string[]> {
  const timer = new AbortController();
  const late = delay(LOOKUP_MS, undefined, { signal: timer.signal }).then(() => undefined, () => undefined);
  const asked = lookup(host, { all: true }).catch((error: Error) => error);
  const answer = await Promise.race([asked, late]);
  timer.abort();
  if (answer === undefined) throw new PullError(`${host} cannot be resolved in time`);
  if (answer instanceof Error) throw new PullError(`${host} cannot be resolved: ${answer.message}`);
  return answer.map(({ address }) => address.replace(/^::ffff:(?=\d+\.)/i, ''));
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

function addressOf({ address }: NodeRow): { readonly host: string; readonly port: number } | undefined {
  if (address === undefined) return undefined;
  const { hostname, port } = new URL(address);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function interfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
}
