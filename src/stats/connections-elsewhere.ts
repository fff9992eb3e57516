import { UnavailableError, type Cluster } from '#cluster';
import type { Application } from '../core/application.ts';
import { PUBLISHER_KINDS, type PublisherKind } from '../core/counters.ts';
import { applicationPlace } from './places.ts';

/** Lifetime of a sum: nodes report once a second. */
const FRESH_MS = 500;

export type Connections = Readonly<Record<PublisherKind, number>>;

interface Known {
  /** Time by the monotonic clock. */
  readonly since: number;
  readonly connections: Promise<Connections | undefined>;
}

/** Viewers that the other nodes serve, as reported up to two seconds ago. */
export class ConnectionsElsewhere {
  readonly #cluster: Pick<Cluster, 'stats' | 'state'>;
  readonly #known = new WeakMap<Application, Known>();

  constructor(cluster: Pick<Cluster, 'stats' | 'state'>) {
    this.#cluster = cluster;
  }

  /** Viewers of an application by kind; undefined while the other nodes cannot be counted. */
  of(application: Application): Promise<Connections | undefined> {
    const now = performance.now();
    const known = this.#known.get(application);
    if (known !== undefined && now - known.since < FRESH_MS) return known.connections;
    const connections = this.#read(application);
    this.#known.set(application, { since: now, connections });
    return connections;
  }

  async #read(application: Application): Promise<Connections | undefined> {
    if (this.#cluster.state === 'degraded') return undefined;
    const { key } = applicationPlace(application);
    try {
      const sum = (await this.#cluster.stats([key])).get(key);
      const elsewhere = (kind: PublisherKind): number => {
        const gauge = `publisher.${kind}`;
        return (sum?.gauges[gauge] ?? 0) - (sum?.own.gauges[gauge] ?? 0);
      };
      return Object.fromEntries(PUBLISHER_KINDS.map((kind) => [kind, elsewhere(kind)])) as Record<
        PublisherKind,
        number
      >;
    } catch (error) {
      if (error instanceof UnavailableError) return undefined;
      throw error;
    }
  }
}
