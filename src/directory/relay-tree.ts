import { weighing, type Cluster, type NodeIdentity, type NodeRow } from '#cluster';
import { ShunnedNodes } from './shunned-nodes.ts';

/**
 * The way of a stream from its owner to many nodes. All nodes rank each other for a stream by rendezvous hashing: the first few get it
 * from the owner, and each later one from one of the nodes before it. So there is no loop, also while nodes do not agree on who
 * is there: every step towards the owner leads to a node of a lower weight. Nodes that are full have their place, too: what they pass
 * on was placed before, and without them the others would have more children than `fanOut`.
 */
export class RelayTree {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  /** How many nodes one node sends a stream to. */
  readonly fanOut: number;
  /** Nodes to which no connection could be made, for any stream. */
  readonly unreachable = new ShunnedNodes();

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, fanOut: number) {
    this.#cluster = cluster;
    this.fanOut = fanOut;
  }

  /** This node. */
  get self(): NodeIdentity {
    return this.#cluster.self;
  }

  /**
   * The node that this one gets a stream from when its owner sends it to enough others; undefined: from the owner.
   * @param stream by which nodes are ranked: the same name on all nodes
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

  /** Whether a node may be a parent still. One that drains is left while it is there, one that is silent may have lost Redis alone. */
  has({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation === incarnation && isPlaced(row);
  }

  /**
   * Whether the owner of a stream, this node, sends it to another one as well.
   * @param others how many it sends it to besides
   */
  hasRoom(stream: string, node: NodeIdentity, others: number): boolean {
    return others < this.fanOut || this.isFirst(stream, node);
  }

  /** How many nodes one that passes a stream on sends it to at most: some come in place of another one that cannot. */
  get mostChildren(): number {
    return 2 * this.fanOut;
  }

  /** Whether another node is one of the first few, which get a stream of this one from it. */
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
   * Whether this node passes on to another one a stream that it does not own. Weights alone decide, which are the same for every
   * node: so there is no loop, whichever node is taken for the owner.
   */
  mayFeed(stream: string, { id }: NodeIdentity): boolean {
    const weigh = weighing(stream);
    return weigh(this.#cluster.self.id) < weigh(id);
  }

  /** Whether other nodes get a stream from this one when all of them have viewers of it. */
  hasChildren(stream: string, owner: NodeIdentity): boolean {
    const { self } = this.#cluster;
    const others = this.#cluster.nodes().filter(({ id }) => id !== owner.id && id !== self.id);
    const place = this.#before(stream, self.id, owner).length;
    return others.filter(isPlaced).length >= this.fanOut * (place + 1);
  }

  /** Nodes that are in front of one, the first of all first. */
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

/** Whether a node has its place among the others: until it is known to have gone, or to be about to. */
function isPlaced({ state }: NodeRow): boolean {
  return state === 'ready' || state === 'silent';
}
