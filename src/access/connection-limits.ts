import type { Application } from '../core/application.ts';
import type { PublisherKind } from '../core/counters.ts';
import { kilnError } from '../errors.ts';
import { publisherConfig, type OutgoingProtocol } from './request.ts';

/** Viewers by kind. */
type Connections = Readonly<Record<PublisherKind, number>>;

/** Viewers of an application on other nodes; undefined while these cannot be counted. */
export type CountElsewhere = (application: Application) => Promise<Connections | undefined>;

/**
 * `MaxConnection` of a publisher and of all publishers of an application, against the viewers of this node.
 * @throws tooManyConnections
 */
export function limitConnections({ config, counters }: Application, protocol: OutgoingProtocol): void {
  limit(config.publishers.maxConnection, total(counters.publishers));
  limit(publisherConfig(config, protocol)?.maxConnection ?? 0, counters.publishers[protocol]);
}

/**
 * `ClusterMaxConnection` of a publisher and of all publishers of an application, against the viewers of all nodes.
 * @param elsewhere is asked only where there is such a limit
 * @throws tooManyConnections
 */
export async function limitInCluster(
  application: Application,
  protocol: OutgoingProtocol,
  elsewhere: CountElsewhere,
): Promise<void> {
  const { config, counters } = application;
  const ofAll = config.publishers.clusterMaxConnection;
  const ofOne = publisherConfig(config, protocol)?.clusterMaxConnection ?? 0;
  if (ofAll === 0 && ofOne === 0) return;
  const others = await elsewhere(application);
  limit(ofAll, total(counters.publishers) + (others === undefined ? 0 : total(others)));
  limit(ofOne, counters.publishers[protocol] + (others?.[protocol] ?? 0));
}

/** @param most 0: any number */
function limit(most: number, present: number): void {
  if (most > 0 && present >= most) throw kilnError('tooManyConnections', most);
}

/** Pushes to other servers are not viewers. */
function total({ file: _file, push: _push, ...viewers }: Connections): number {
  return Object.values(viewers).reduce((sum, count) => sum + count, 0);
}
