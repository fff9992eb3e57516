import { lookup } from 'node:dns/promises';
import type { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeRow, StoreAddress } from '#cluster';
import { hostFromUrl, type Transport } from '../../config/values.ts';
import { includes } from '../../protocols/tcp.ts';
import { canonical, isLoopback, isUnpullable } from './address.ts';
import { PullError } from './error.ts';

const LOOKUP_MS = 3000;
/** Stands for every address of this machine. */
const HERE = 'here';

export interface PullGuardOptions {
  readonly nodes: () => readonly NodeRow[];
  /** What this server, and others like it, have for something else than to be pulled from. */
  readonly ports: Readonly<Record<Transport, ReadonlySet<number>>>;
  /** Servers of the cluster's store. */
  readonly stores: () => readonly StoreAddress[];
  /** Nothing is pulled from elsewhere; without it from anywhere. */
  readonly networks?: BlockList;
}

/**
 * Keeps pulls from what strangers must not reach through this server: the cluster's own ports, its links, and what is in
 * none of the networks that are configured.
 */
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
  async addresses(host: string, port: number, transport: Transport = 'tcp'): Promise<string[]> {
    if (!(port >= 1 && port <= 65_535))
      throw new PullError(`pulling from ${host}:${port} is not allowed: that is not a port number`);
    const local = new Set(
      Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => canonical(address)) ?? []),
    );
    const machine = (address: string): string => (isLoopback(address) || local.has(address) ? HERE : address);
    const [found, ...others] = await Promise.all([host, ...this.#forbiddenHosts(port, transport)].map(resolve));
    const forbidden = new Set(others.flat().map((address) => machine(canonical(address))));
    if (this.#options.ports[transport].has(port)) forbidden.add(HERE);

    const allowed: string[] = [];
    const objections = new Set<string>();
    for (const address of found as string[]) {
      const plain = canonical(address);
      const objection = forbidden.has(machine(plain))
        ? 'the port belongs to this server or its cluster'
        : this.#objection(plain);
      if (objection === undefined) allowed.push(address);
      else objections.add(objection);
    }
    if (allowed.length === 0)
      throw new PullError(`pulling from ${host}:${port} is not allowed: ${[...objections].join('; ')}`);
    return allowed;
  }

  /** What speaks against an address, whatever the port. @param address a canonical one */
  #objection(address: string): string | undefined {
    if (isUnpullable(address)) return `${address} is a link-local, multicast, reserved or unspecified address`;
    const { networks } = this.#options;
    if (networks !== undefined && !includes(networks, address))
      return `${address} is in none of the networks of Modules/Pull`;
    return undefined;
  }

  /** Names and addresses of the machines on which a port is out of bounds, but for this one. */
  #forbiddenHosts(port: number, transport: Transport): string[] {
    const { nodes, ports, stores } = this.#options;
    const servers = nodes().flatMap(({ address }) => (address === undefined ? [] : new URL(address)));
    const isOfNode = (server: URL): boolean =>
      ports[transport].has(port) || (transport === 'tcp' && Number(server.port) === port);
    const ofNodes = servers.filter(isOfNode).map(({ hostname }) => hostFromUrl(hostname));
    const ofStores = transport === 'tcp' ? stores().filter((store) => store.port === port) : [];
    return [...new Set([...ofNodes, ...ofStores.map((store) => store.host)])];
  }
}

function whyUnresolved({ code = '', message }: NodeJS.ErrnoException): string {
  if (code === 'ENOTFOUND') return 'the host does not exist';
  return code === 'EAI_AGAIN' ? 'the name server does not answer' : message;
}

/** @throws PullError */
async function resolve(host: string): Promise<string[]> {
  const timer = new AbortController();
  const late = delay(LOOKUP_MS, undefined, { signal: timer.signal }).then(
    () => undefined,
    () => undefined,
  );
  const asked = lookup(host, { all: true }).catch((error: Error) => error);
  const answer = await Promise.race([asked, late]);
  timer.abort();
  if (answer === undefined) throw new PullError(`the name ${host} could not be resolved in time`);
  if (answer instanceof Error) throw new PullError(`the name ${host} cannot be resolved: ${whyUnresolved(answer)}`);
  return answer.map(({ address }) => address);
}
