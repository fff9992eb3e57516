import { ranked, weighing, type Cluster, type NodeRow } from '#cluster';
import { isReached, publicUrlOf, takesViewers, type SentModule } from '../../../access/public-nodes.ts';
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
  /** Key of its stream: all nodes choose the same nodes for it. */
  readonly stream: string;
  /** Id of the node that has the stream, where that is known. */
  readonly owner?: string | undefined;
  /** Text that is of its session alone. */
  readonly session: string;
  /** Pathway that it plays from, if it names one. */
  readonly current?: string | undefined;
}

/** Nodes of one answer. */
const MAX_NODES = 4;
/** Nodes among which the players of a stream are spread while these have room: each further one has to fetch the stream. */
const SPREAD = 2;
/** A node with room is not without viewers, however busy it is. */
const LEAST_SHARE = 0.05;
const LEGAL = /^[\w.-]{1,64}$/;

/** Pathways of players of one module: nodes that have a public URL, in an order that spreads the players of a stream by load over a few. */
export class Pathways {
  readonly #cluster: Pick<Cluster, 'nodes'>;
  readonly #module: SentModule;

  constructor(cluster: Pick<Cluster, 'nodes'>, module: SentModule) {
    this.#cluster = cluster;
    this.#module = module;
  }

  /** Tests whether a player has a choice, now or when other nodes have room again. */
  areOffered({ origin, isSecure }: AskedHost): boolean {
    const reached = this.#cluster.nodes().filter((row) => isReached(row, this.#module, isSecure));
    return reached.length > 1 && reached.some((row) => !isAsked(row, origin));
  }

  /**
   * Pathways of a player, the best first, `REQUESTED` among them: it ends the list unless it is the URL of one of the nodes. A player keeps
   * its node until that leaves the cluster: a full one sends new viewers elsewhere alone.
   */
  of({ origin, isSecure, stream, owner, session, current }: SteeredPlayer): Pathway[] {
    const rows = this.#cluster.nodes();
    const able = rows.filter((row) => takesViewers(row, this.#module, isSecure));
    const first = able.filter(({ id }) => id === owner);
    const ids = new Set([...first.map(({ id }) => id), ...ranked(stream, able)]);
    const inOrder = [...ids].flatMap((id) => able.find((row) => row.id === id) ?? []);
    const weigh = weighing(session);
    const near = inOrder.slice(0, SPREAD).sort((one, other) => score(other, weigh) - score(one, weigh));
    const kept = rows.filter(
      (row) => row.state === 'ready' && isReached(row, this.#module, isSecure) && pathwayOf(row, origin).id === current,
    );
    const nodes = [...new Set([...kept, ...near, ...inOrder.slice(SPREAD)])].slice(0, MAX_NODES);
    const ways = nodes.map((row) => pathwayOf(row, origin));
    return ways.some(({ id }) => id === REQUESTED) ? ways : [...ways, { id: REQUESTED, url: undefined }];
  }
}

function pathwayOf(row: NodeRow, origin: string): Pathway {
  if (isAsked(row, origin)) return { id: REQUESTED, url: undefined };
  const { origin: url } = new URL(publicUrlOf(row) ?? '');
  return { id: LEGAL.test(row.id) && row.id !== REQUESTED ? row.id : shortDigest(row.id), url };
}

/** Tests whether a player asks a node itself; by http where a proxy takes TLS away, of which Kiln does not know. */
function isAsked(row: NodeRow, origin: string): boolean {
  const { host } = new URL(publicUrlOf(row) ?? '');
  return host === new URL(origin).host;
}

/** Rendezvous hashing by weight: of many sessions each of some nodes gets a share in proportion to the room that it has. */
function score({ id, load }: NodeRow, weigh: (id: string) => number): number {
  const share = Math.max(LEAST_SHARE, 1 - load);
  return -share / Math.log((weigh(id) + 0.5) / 2 ** 32);
}
