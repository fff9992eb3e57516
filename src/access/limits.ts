import { isIP, isIPv6, type BlockList } from 'node:net';
import type { ApplicationConfig } from '../config/model.ts';
import { parseNetworks } from '../config/values.ts';
import { TEMPLATE, type VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import { blockList } from '../config/networks.ts';
import { canonicalAddress } from '../lib/address.ts';
import { MinuteRates } from './minute-rates.ts';
import type { AccessRequest } from './request.ts';

type Asking = Pick<AccessRequest, 'direction' | 'protocol' | 'client'>;
type LimitsConfig = NonNullable<ApplicationConfig['limits']>;

/** Networks of an application's `Limits`. */
class Networks {
  readonly #allow: BlockList | undefined;
  readonly #deny: BlockList | undefined;

  constructor({ allow, deny }: LimitsConfig) {
    this.#allow = blockList(allow === undefined ? undefined : parseNetworks(allow));
    this.#deny = blockList(deny === undefined ? undefined : parseNetworks(deny));
  }

  /** @param given by a proxy, perhaps: text that is no address is in no network */
  allow(given: string): boolean {
    if (isIP(given) === 0) return this.#allow === undefined;
    const address = canonicalAddress(given);
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (this.#deny?.check(address, family) === true) return false;
    return this.#allow === undefined || this.#allow.check(address, family);
  }
}

/** The limits of applications on client addresses: networks, and how often an address may come in a minute, on this node. */
export class Limits {
  readonly #networks = new WeakMap<LimitsConfig, Networks>();
  readonly #rates = new MinuteRates();

  /** @throws networkForbidden, tooOften */
  check(asking: Asking, vhost: VirtualHost, app: string): void {
    const limits = limitsOf(vhost, app);
    if (limits === undefined) return;
    if (!this.#of(limits).allow(asking.client.realAddress)) throw kilnError('networkForbidden');
    const most = perMinute(asking, limits);
    if (most > 0 && this.#rates.of(rateKey(asking, vhost, app)) >= most) throw kilnError('tooOften', most);
  }

  /** Counts a client that `check` let pass. */
  count(asking: Asking, vhost: VirtualHost, app: string): void {
    const limits = limitsOf(vhost, app);
    if (limits !== undefined && perMinute(asking, limits) > 0) this.#rates.add(rateKey(asking, vhost, app));
  }

  #of(limits: LimitsConfig): Networks {
    let networks = this.#networks.get(limits);
    if (networks === undefined) this.#networks.set(limits, (networks = new Networks(limits)));
    return networks;
  }
}

/** An application that is only made on request has those of its template. */
function limitsOf(vhost: VirtualHost, app: string): LimitsConfig | undefined {
  return (vhost.applications.get(app)?.config ?? vhost.template)?.limits;
}

/** 0: any number. A thumbnail is an image and no connection. */
function perMinute({ direction, protocol }: Asking, limits: LimitsConfig): number {
  if (direction === 'incoming') return limits.publishesPerMinute;
  return protocol === 'thumbnail' ? 0 : limits.connectionsPerMinute;
}

/** Names of applications that are still to be made of the template are the client's own: they all count as one. */
function rateKey({ direction, client }: Asking, vhost: VirtualHost, app: string): string {
  const name = vhost.applications.has(app) ? app : TEMPLATE;
  return `${direction} ${vhost.name}/${name} ${subscriber(client.realAddress)}`;
}

/** Addresses of one client: an IPv4 address, or the /64 of an IPv6 one (RFC 6177). */
function subscriber(given: string): string {
  if (isIP(given) === 0) return given;
  const address = canonicalAddress(given);
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) while (groups.length < 4) groups.push('0');
  return groups.slice(0, 4).join(':');
}
