import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeRow, StoreAddress } from '#cluster';
import { canonical, isLoopback, isUnpullable } from './address.ts';
import { PullError } from './error.ts';

const LOOKUP_MS = 3000;
/** Stands for every address of this machine. */
const HERE = 'here';

export interface PullGuardOptions {
  readonly nodes: () => readonly NodeRow[];
  /** TCP ports that this server, and others like it, have for something else than to be pulled from. */
  readonly ports: ReadonlySet<number>;
  /** Servers of the cluster's store. */
  readonly stores: () => readonly StoreAddress[];
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
   * @throws PullError when there is none, also when it cannot be found out what is out of bounds
   */
  async addresses(host: string, port: number): Promise<string[]> {
    const local = new Set(Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => canonical(address)) ?? []));
    const machine = (address: string): string => {
      const plain = canonical(address);
      return isLoopback(plain) || local.has(plain) ? HERE : plain;
    };
    const [found, ...others] = await Promise.all([host, ...this.#forbiddenHosts(port)].map(resolve));
    const forbidden = new Set(others.flat().map(machine));
    if (this.#options.ports.has(port)) forbidden.add(HERE);
    const allowed = (found as string[]).filter((address) => !isUnpullable(canonical(address)) && !forbidden.has(machine(address)));
    if (allowed.length === 0) throw new PullError(`nothing is pulled from ${host}:${port}`);
    return allowed;
  }

  /** Names and addresses of the machines on which a port is out of bounds, but for this one. */
  #forbiddenHosts(port: number): string[] {
    const { nodes, ports, stores } = this.#options;
    const servers = nodes().flatMap(({ address }) => (address === undefined ? [] : new URL(address)));
    const ofNodes = servers.filter((server) => Number(server.port) === port || ports.has(port)).map(({ hostname }) => hostname.replace(/^\[|\]$/g, ''));
    return [...new Set([...ofNodes, ...stores().filter((store) => store.port === port).map((store) => store.host)])];
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
  return answer.map(({ address }) => address);
}
