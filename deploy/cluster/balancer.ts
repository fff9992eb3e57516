import { hostInUrl } from '../../src/lib/address.ts';
import type { NodePorts } from './ports.ts';

type Ports = Pick<NodePorts, 'rtmp' | 'http' | 'ovt' | 'api'>;

const SERVER = /^ *server node-(\d+) /;

/** deploy/haproxy.cfg for any number of nodes: repeats the lines of its first node. */
export function balancerConfig(text: string, count: number): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [, number] = SERVER.exec(line) ?? [];
      if (number === undefined) return [line];
      if (number !== '1') return [];
      return Array.from({ length: count }, (_, index) =>
        line.replaceAll('node-1', `node-${index + 1}`).replaceAll('NODE_1', `NODE_${index + 1}`),
      );
    })
    .join('\n');
}

/** Variables for that file, for nodes and a balancer on one address. */
export function balancerEnvironment(
  address: string,
  { balancer, nodes }: { readonly balancer: Ports; readonly nodes: readonly Ports[] },
): Record<string, string> {
  const at = (port: number): string => `${hostInUrl(address)}:${port}`;
  const environment: Record<string, string> = {};
  for (const name of ['rtmp', 'http', 'ovt', 'api'] as const) {
    const key = name.toUpperCase();
    environment[`KILN_LISTEN_${key}`] = at(balancer[name]);
    nodes.forEach((ports, index) => (environment[`KILN_NODE_${index + 1}_${key}`] = at(ports[name])));
  }
  return environment;
}
