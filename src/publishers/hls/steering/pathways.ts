import { weighing, type Cluster, type NodeRow } from '#cluster';
import { publicUrlOf, takesViewers, type SentModule } from '../../../access/public-nodes.ts';
import { shortDigest } from '../../../lib/short-digest.ts';

/** Pathway of the host that a player has the master playlist from: a load balancer, or a node (RFC 8216bis section 4.4.6.2). */
export const REQUESTED = '.';

/** A way to the stream (RFC 8216bis section 7): a node that players reach itself, or the host that they asked. */
export interface Pathway {
  readonly id: string;
  /** Scheme, host and port; undefined for `REQUESTED`. */
  readonly url: string | undefined;
}

/** The host that a player asks. */
export interface AskedHost {
  /** Scheme, host and port, as of `URL.origin`. */
  readonly origin: string;
  /** The player goes to https alone, as browsers do from such a page. */
  readonly isSecure: boolean;
}

/** A player that asks for its pathways. */
export interface SteeredPlayer extends AskedHost {
  /** Text that is of its session alone: each has an order of its own. */
  readonly session: string;
  /** Pathway that it plays from, if it names one. */
  readonly current?: string | undefined;
}

/** Nodes of one answer. */
const MAX_NODES = 4;
/** A node with room is not without viewers, however busy it is. */
const LEAST_SHARE = 0.05;
const LEGAL = /^[\w.-]{1,64}$/;

/** Pathways of players of one module: nodes with room that have a public URL, in an order that spreads the players by load. */
export class Pathways {
  readonly #cluster: Pick<Cluster, 'nodes'>;
  readonly #module: SentModule;

  constructor(cluster: Pick<Cluster, 'nodes'>, module: SentModule) {
    this.#cluster = cluster;
    this.#module = module;
  }

  /** Tests whether a player has a choice, now or when other nodes have room again. */
  areOffered({ origin, isSecure }: AskedHost): boolean {
    return this.#cluster.nodes().some((row) => {
      const url = publicUrlOf(row);
      return url !== undefined && new URL(url).origin !== origin && (!isSecure || url.startsWith('https:'));
    });
  }

  /**
   * Pathways of a player, the best first, `REQUESTED` among them: it ends the list unless it is the URL of one of the nodes. A player keeps
   * its node while that has room.
   */
  of({ origin, isSecure, session, current }: SteeredPlayer): Pathway[] {
    const weigh = weighing(session);
    const able = this.#cluster.nodes().filter((row) => takesViewers(row, this.#module, isSecure));
    const ways = able
      .map((row) => ({ ...pathwayOf(row, origin), score: score(row, weigh) }))
      .sort((one, other) => other.score - one.score)
      .map(({ id, url }) => ({ id, url }));
    const kept = ways.find(({ id }) => id === current);
    const first = kept === undefined ? ways : [kept, ...ways.filter((way) => way !== kept)];
    const nodes = first.slice(0, MAX_NODES);
    return nodes.some(({ id }) => id === REQUESTED) ? nodes : [...nodes, { id: REQUESTED, url: undefined }];
  }
}

function pathwayOf(row: NodeRow, origin: string): Pathway {
  const url = new URL(publicUrlOf(row) ?? '').origin;
  if (url === origin) return { id: REQUESTED, url: undefined };
  return { id: LEGAL.test(row.id) && row.id !== REQUESTED ? row.id : shortDigest(row.id), url };
}

/** Rendezvous hashing by weight: of many sessions each node gets a share in proportion to the room that it has. */
function score({ id, load }: NodeRow, weigh: (id: string) => number): number {
  const share = Math.max(LEAST_SHARE, 1 - load);
  return -share / Math.log((weigh(id) + 0.5) / 2 ** 32);
}
