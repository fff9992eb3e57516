import type { NetworkInterfaceInfo } from 'node:os';
import type { ServerConfig } from './model.ts';
import type { Problem } from './resolve.ts';

/** Addresses of one family that a machine has with a network, a second one and a tunnel; containers add many more. */
const MANY = 4;
/** Addresses that a warning names. */
const NAMED = 3;
const FAMILIES: Readonly<Record<string, NetworkInterfaceInfo['family']>> = {
  '*': 'IPv4',
  '0.0.0.0': 'IPv4',
  '::': 'IPv6',
};

type Address = Pick<NetworkInterfaceInfo, 'address' | 'family' | 'internal'>;

/**
 * Warns if every client would be offered many addresses of this machine, such as those of container networks: the client
 * tries each of them, and most are unreachable.
 */
export function manyIceAddresses({ bind }: ServerConfig, locals: readonly Address[]): Problem[] {
  return (['providers', 'publishers'] as const).flatMap((side) => {
    const ice = bind[side].webrtc?.iceCandidates;
    if (ice === undefined) return [];
    return [...new Set(ice.iceCandidate.map(({ address }) => address))].flatMap((wildcard) => {
      const family = FAMILIES[wildcard];
      const offered = locals.filter(
        (local) =>
          local.family === family && !local.internal && (ice.enableLinkLocalAddress || !isLinkLocal(local.address)),
      );
      if (family === undefined || offered.length <= MANY) return [];
      const names = offered.slice(0, NAMED).map(({ address }) => address);
      const message = `${wildcard} offers every client ${offered.length} addresses of this machine (${names.join(', ')}, ...), most of which slow down connecting: name the one that clients reach`;
      return [{ path: ['bind', side, 'webrtc', 'iceCandidates', 'iceCandidate'], message }];
    });
  });
}

function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab]/i.test(address);
}
