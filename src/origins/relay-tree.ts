import { weighing, type Cluster, type NodeIdentity, type NodeRow } from '#cluster';

/**
 * The way of a stream from its owner to many nodes. All nodes rank each other for a stream by rendezvous hashing: the first few get it
 * from the owner, and each later one from one of those in front of it. So there is no loop, also while nodes do not agree on who
 * is there: every step towards the owner leads to a node of a lower weight. In place of one that is full the nearest one in front
 * feeds those behind it: only where all are full it does itself.
 */
export class RelayTree {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  /** How many nodes one node sends a stream to. */
  readonly fanOut: number;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, fanOut: number) {
    this.#cluster = cluster;
    this.fanOut = fanOut;
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
    const nearest = [...before.slice(0, place + 1).reverse(), ...before.slice(place + 1)].filter(
      ({ incarnation }) => !shunned.has(incarnation),
    );
    return nearest.find(({ full }) => !full) ?? nearest[0];
  }

  /** Whether a node may be a parent still. One that drains is left while it is there. */
  has({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation === incarnation && row.state === 'ready';
  }

  /** Whether another node is one of the first few, which get a stream of this one from it. */
  isFirst(stream: string, { id }: NodeIdentity): boolean {
    return this.#before(stream, id, this.#cluster.self).length < this.fanOut;
  }

  /**
   * Whether this node passes a stream on to another one that is not one of its own. Only weights count, which nobody sees
   * otherwise: so there is no loop, whoever takes whom for the owner.
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
    return others.filter(({ state }) => state === 'ready').length >= this.fanOut * (place + 1);
  }

  /** Nodes that are in front of one, the first of all first. */
  #before(stream: string, id: string, owner: NodeIdentity): NodeRow[] {
    const weigh = weighing(stream);
    const own = weigh(id);
    return this.#cluster
      .nodes()
      .map((node) => ({ node, weight: weigh(node.id) }))
      .filter(({ weight }) => weight < own)
      .filter(({ node: { id: other, state } }) => state === 'ready' && other !== owner.id && other !== id)
      .sort((a, b) => a.weight - b.weight || (a.node.id < b.node.id ? -1 : 1))
      .map(({ node }) => node);
  }
}
