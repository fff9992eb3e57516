import type { EventEmitter } from 'node:events';
import type { ClusterEvents } from '../types.ts';
import type { Beat, Nodes } from './nodes.ts';

/** Announces each change of the nodes that beats bring, once. */
export class NodeEvents {
  readonly #events: EventEmitter<ClusterEvents>;
  readonly #nodes: Pick<Nodes, 'draining'>;
  #isReplaced = false;
  #isDraining = false;
  /** Kept until a beat was handled as a whole: its claims may name new nodes. */
  #haveChanged = false;

  constructor(events: EventEmitter<ClusterEvents>, nodes: Pick<Nodes, 'draining'>) {
    this.#events = events;
    this.#nodes = nodes;
  }

  /** Whether this node drains, as announced last. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  note({ nodesChanged }: Beat): void {
    this.#haveChanged ||= nodesChanged;
  }

  announceReplacement({ replaced, recovery }: Beat): void {
    // a Redis that is being restored may know an earlier life of this node
    const isReplaced = replaced && recovery === undefined;
    if (isReplaced && !this.#isReplaced) this.#events.emit('replaced');
    this.#isReplaced = isReplaced;
  }

  announceNodes(): void {
    const { draining } = this.#nodes;
    if (draining !== this.#isDraining) {
      this.#isDraining = draining;
      this.#events.emit('drain', draining);
    }
    if (this.#haveChanged) this.#events.emit('nodes');
    this.#haveChanged = false;
  }
}
