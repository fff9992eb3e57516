import type { PortPair } from './addresses.ts';

/** Ports with the clients that may come to them. */
export interface ServedPorts extends PortPair {
  readonly publishes: boolean;
  readonly plays: boolean;
}

/** Ports of one protocol: for both, for publishers alone, and for players alone. */
export function portGroups(toPublish: PortPair = {}, toPlay: PortPair = {}): ServedPorts[] {
  const pick = (publishes: boolean, plays: boolean): ServedPorts => {
    const of = (key: 'port' | 'tlsPort'): number | undefined => {
      const [one, other] = publishes ? [toPublish[key], toPlay[key]] : [toPlay[key], toPublish[key]];
      return (one === other) === (publishes && plays) ? one : undefined;
    };
    return { port: of('port'), tlsPort: of('tlsPort'), publishes, plays };
  };
  const all = [pick(true, true), pick(true, false), pick(false, true)];
  return all.filter(({ port, tlsPort }) => port !== undefined || tlsPort !== undefined);
}
