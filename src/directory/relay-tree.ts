import { weighing, type Cluster, type NodeIdentity, type NodeRow } from '#cluster';
import { ShunnedNodes } from './shunned-nodes.ts';

/**
 * The way of a stream from its owner to many nodes. All nodes rank each other for a stream by rendezvous hashing: the first few
 * get it from the owner, and each later one from one of the nodes before it. There is no loop, even while nodes disagree about
 * the members of the cluster: every step towards the owner leads to a node of a lower weight. Full nodes keep their place: the
 * streams that they pass on were placed before, and without them other nodes would have more children than `fanOut`.
 */
export class RelayTree {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  /** Number of nodes that one node sends a stream to. */
  readonly fanOut: number;
  /** Nodes to which no connection could be made, for any stream. */
  readonly unreachable = new ShunnedNodes();

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, fanOut: number) {
    this.#cluster = cluster;
    this.fanOut = fanOut;
  }

  get self(): NodeIdentity {
    return this.#cluster.self;
  }

  /**
   * Node that this one gets a stream from when its owner sends it to enough others; undefined: the owner.
   * @param stream key by which nodes are ranked: the same on all nodes
   * @param shunned incarnations that are not asked at present
   */
  parent(stream: string, owner: NodeIdentity, shunned: ReadonlySet<string> = new Set()): NodeRow | undefined {
    const before = this.#before(stream, this.#cluster.self.id, owner);
    const place = Math.floor(before.length / this.fanOut) - 1;
    if (place < 0) return undefined;
    const unreachable = this.unreachable.incarnations;
    const nearest = [...before.slice(0, place + 1).reverse(), ...before.slice(place + 1)].filter(
      ({ incarnation }) => !shunned.has(incarnation) && !unreachable.has(incarnation),
    );
    return nearest.find(({ state }) => state === 'ready') ?? nearest[0];
  }

  /** Whether a node may still be a parent. A draining one may not; a silent one may have lost Redis alone. */
  has({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation === incarnation && isPlaced(row);
  }

  /**
   * Whether the owner of a stream, this node, may send it to another one as well.
   * @param others number of other nodes that it sends the stream to
   */
  hasRoom(stream: string, node: NodeIdentity, others: number): boolean {
    return others < this.fanOut || this.isFirst(stream, node);
  }

  /** Limit of children of a node that passes a stream on: some replace another node that cannot. */
  get mostChildren(): number {
    return 2 * this.fanOut;
  }

  /** Whether another node is one of the first few, which get a stream of this node from it. */
  isFirst(stream: string, { id }: NodeIdentity): boolean {
    const { self } = this.#cluster;
    const weigh = weighing(stream);
    const own = weigh(id);
    let before = 0;
    for (const node of this.#cluster.nodes()) {
      if (node.id === self.id || node.id === id || !isPlaced(node) || weigh(node.id) >= own) continue;
      if (++before === this.fanOut) return false;
    }
    return true;
  }

  /**
   * Whether this node may pass a stream that it does not own on to another one. Weights alone decide, which are the same on
   * every node: so there is no loop, whichever node is taken for the owner.
   */
  mayFeed(stream: string, { id }: NodeIdentity): boolean {
    const weigh = weighing(stream);
    return weigh(this.#cluster.self.id) < weigh(id);
  }

  hasChildren(stream: string, owner: NodeIdentity): boolean {
    const { self } = this.#cluster;
    const others = this.#cluster.nodes().filter(({ id }) => id !== owner.id && id !== self.id);
    const place = this.#before(stream, self.id, owner).length;
    return others.filter(isPlaced).length >= this.fanOut * (place + 1);
  }

  /** Ranked nodes with a lower weight than a node, without the owner, in ascending order. */
  #before(stream: string, id: string, owner: NodeIdentity): NodeRow[] {
    const weigh = weighing(stream);
    const own = weigh(id);
    return this.#cluster
      .nodes()
      .map((node) => ({ node, weight: weigh(node.id) }))
      .filter(({ weight }) => weight < own)
      .filter(({ node }) => isPlaced(node) && node.id !== owner.id && node.id !== id)
      .sort((a, b) => a.weight - b.weight || (a.node.id < b.node.id ? -1 : 1))
      .map(({ node }) => node);
  }
}

/** Whether a node is ranked: until it is known to have gone or to drain. */
function isPlaced({ state }: NodeRow): boolean {
  return state === 'ready' || state === 'silent';
}
