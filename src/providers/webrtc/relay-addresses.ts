import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { WebrtcBindConfig } from '../../config/model.ts';
import { canonicalAddress } from '../../lib/address.ts';
import type { Logger } from '../../log/log.ts';
import { localAddresses } from '../../webrtc/addresses.ts';

/** Age after which resolved names are looked up again when used. */
const FRESH_MS = 60_000;

/**
 * Addresses of the relays that publishers are given: clients from there are relayed. The address that a relay sends from
 * is unknown if it differs from the one it is called at.
 */
export class RelayAddresses {
  readonly #names: readonly string[];
  readonly #log: Logger;
  readonly #fixed: ReadonlySet<string>;
  readonly #found = new Map<string, readonly string[]>();
  #lookedUp = 0;

  /** Looks up the names in the configuration, in the background. */
  constructor({ iceCandidates, iceServers }: Pick<WebrtcBindConfig, 'iceCandidates' | 'iceServers'>, log: Logger) {
    const urls = iceServers.flatMap(({ urls: all }) => all);
    const hosts = [...iceCandidates.tcpRelay.map(({ host }) => host), ...urls.flatMap((url) => relayHost(url) ?? [])];
    const named = (host: string): boolean => host !== '*' && isIP(host) === 0;
    this.#log = log;
    this.#names = [...new Set(hosts.filter(named))];
    this.#fixed = new Set(
      hosts.filter((host) => !named(host)).flatMap((host) => (host === '*' ? ownAddresses() : canonicalAddress(host))),
    );
    this.#lookUp();
  }

  has(address: string): boolean {
    if (this.#names.length > 0 && performance.now() - this.#lookedUp > FRESH_MS) this.#lookUp();
    const plain = canonicalAddress(address);
    return this.#fixed.has(plain) || [...this.#found.values()].some((addresses) => addresses.includes(plain));
  }

  /** Looks up all names. A name that cannot be resolved keeps its last addresses. */
  #lookUp(): void {
    this.#lookedUp = performance.now();
    for (const host of this.#names) {
      lookup(host, { all: true }).then(
        (found) =>
          this.#found.set(
            host,
            found.map(({ address }) => canonicalAddress(address)),
          ),
        (err: unknown) =>
          this.#log.warn(
            { host, err },
            'the address of the TURN relay cannot be resolved: publishers behind it are shown as UDP clients',
          ),
      );
    }
  }
}

/** External addresses of this machine. */
function ownAddresses(): string[] {
  return localAddresses()
    .filter(({ internal }) => !internal)
    .map(({ address }) => canonicalAddress(address));
}

/** Host of a TURN URI (RFC 7065); undefined for other URIs, such as those of STUN servers. */
function relayHost(url: string): string | undefined {
  const match = /^turns?:(?:\[([^\]]+)\]|([^:?[]+))/i.exec(url);
  return match?.[1] ?? match?.[2];
}
