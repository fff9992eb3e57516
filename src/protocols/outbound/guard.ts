import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { NodeRow, StoreAddress } from '#cluster';
import { hostFromUrl, type Transport } from '../../lib/address.ts';
import { within } from '../../lib/within.ts';
import { includes } from '../tcp.ts';
import { canonical, isLoopback, isMulticast, isUnreachable } from './address.ts';

const LOOKUP_MS = 3000;
/** Stands for every address of this machine. */
const HERE = 'here';

export interface OutboundGuardOptions {
  /** Beginning of the error texts: `pulling from`. */
  readonly action: string;
  /** Makes the errors of this guard and of its users. */
  readonly error: (reason: string) => Error;
  readonly nodes: () => readonly NodeRow[];
  /** Ports of this server, and of others like it, that such connections must not reach. */
  readonly ports: Readonly<Record<Transport, ReadonlySet<number>>>;
  /** Servers of the cluster's store. */
  readonly stores: () => readonly StoreAddress[];
  /** Networks that may be connected to, and the element of Server.xml that lists them; without it, all. */
  readonly allowed?: { readonly networks: BlockList; readonly element: string };
}

/**
 * Decides where outgoing connections may go, whose targets clients choose: not to the cluster's own ports, link-local
 * addresses, or addresses outside the configured networks.
 */
export class OutboundGuard {
  readonly #options: OutboundGuardOptions;
  /** Pending lookups, which are shared: an unresponsive name server delays each one for long. */
  readonly #lookups = new Map<string, Promise<LookupAddress[] | Error>>();

  constructor(options: OutboundGuardOptions) {
    this.#options = options;
  }

  /**
   * Resolves a host to the addresses that may be connected to, in the order of preference. Connect to one of them and not to
   * the name, which may resolve to others a moment later.
   * @param signal ends the wait for name servers
   * @throws what `error` makes when there is none, when the forbidden addresses cannot be determined, or the signal aborts
   */
  async addresses(host: string, port: number, transport: Transport = 'tcp', signal?: AbortSignal): Promise<string[]> {
    if (!(port >= 1 && port <= 65_535)) throw this.#refusal(host, port, 'that is not a port number');
    const local = new Set(
      Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => canonical(address)) ?? []),
    );
    const machine = (address: string): string => (isLoopback(address) || local.has(address) ? HERE : address);
    const [found, ...others] = await Promise.all(
      [host, ...this.#forbiddenHosts(port, transport)].map((name) => this.#resolve(name, signal)),
    );
    const forbidden = new Set(others.flat().map((address) => machine(canonical(address))));
    if (this.#options.ports[transport].has(port)) forbidden.add(HERE);

    const allowed: string[] = [];
    const objections = new Set<string>();
    for (const address of found as string[]) {
      const plain = canonical(address);
      const objection = forbidden.has(machine(plain))
        ? 'the port belongs to this server or its cluster'
        : this.#objection(plain, transport);
      if (objection === undefined) allowed.push(address);
      else objections.add(objection);
    }
    if (allowed.length === 0) throw this.#refusal(host, port, [...objections].join('; '));
    return allowed;
  }

  /** Whether an address may be connected with, whatever the port. */
  permits(address: string, transport: Transport): boolean {
    return this.#objection(canonical(address), transport) === undefined;
  }

  error(reason: string): Error {
    return this.#options.error(reason);
  }

  /** Error for a connection whose signal has aborted. */
  unwanted(): Error {
    return this.error('the connection is not wanted any more');
  }

  #refusal(host: string, port: number, why: string): Error {
    return this.error(`${this.#options.action} ${host}:${port} is not allowed: ${why}`);
  }

  /** Reason against an address, whatever the port. @param address a canonical one */
  #objection(address: string, transport: Transport): string | undefined {
    if (isUnreachable(address)) return `${address} is a link-local, reserved or unspecified address`;
    const { allowed } = this.#options;
    if (isMulticast(address)) {
      if (transport === 'tcp') return `${address} is a multicast address`;
      if (allowed === undefined)
        return `${address} is a multicast address, which only a list of allowed networks permits`;
    }
    if (allowed !== undefined && !includes(allowed.networks, address))
      return `${address} is in none of the networks of ${allowed.element}`;
    return undefined;
  }

  /** Names and addresses of the other machines on which a port is forbidden. */
  #forbiddenHosts(port: number, transport: Transport): string[] {
    const { nodes, ports, stores } = this.#options;
    const servers = nodes().flatMap(({ address }) => (address === undefined ? [] : new URL(address)));
    const isOfNode = (server: URL): boolean =>
      ports[transport].has(port) || (transport === 'tcp' && Number(server.port) === port);
    const ofNodes = servers.filter(isOfNode).map(({ hostname }) => hostFromUrl(hostname));
    const ofStores = transport === 'tcp' ? stores().filter((store) => store.port === port) : [];
    return [...new Set([...ofNodes, ...ofStores.map((store) => store.host)])];
  }

  async #resolve(host: string, signal: AbortSignal | undefined): Promise<string[]> {
    const answer = await within(LOOKUP_MS, this.#lookup(host), signal);
    if (signal?.aborted === true) throw this.unwanted();
    if (answer === undefined) throw this.error(`the name ${host} could not be resolved in time`);
    if (answer instanceof Error) throw this.error(`the name ${host} cannot be resolved: ${whyUnresolved(answer)}`);
    return answer.map(({ address }) => address);
  }

  #lookup(host: string): Promise<LookupAddress[] | Error> {
    const present = this.#lookups.get(host);
    if (present !== undefined) return present;
    const asked = lookup(host, { all: true })
      .catch((error: Error) => error)
      .finally(() => this.#lookups.delete(host));
    this.#lookups.set(host, asked);
    return asked;
  }
}

function whyUnresolved({ code = '', message }: NodeJS.ErrnoException): string {
  if (code === 'ENOTFOUND') return 'the host does not exist';
  return code === 'EAI_AGAIN' ? 'the name server does not answer' : message;
}
