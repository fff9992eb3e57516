import type { OutputStream } from '../../core/stream.ts';

/** To which nodes this one sends its output streams. */
export class FedNodes {
  /** By output stream and id of the node: how many connections there are. */
  readonly #fed = new Map<OutputStream, Map<string, number>>();

  /** How many nodes get a stream, another one not counted. */
  besides(output: OutputStream, node: string): number {
    const nodes = this.#fed.get(output);
    return (nodes?.size ?? 0) - (nodes?.has(node) === true ? 1 : 0);
  }

  /** A node gets a stream until the answer is called, once. */
  add(output: OutputStream, node: string): () => void {
    const nodes = this.#fed.get(output) ?? new Map<string, number>();
    this.#fed.set(output, nodes);
    nodes.set(node, (nodes.get(node) ?? 0) + 1);
    return () => {
      const left = (nodes.get(node) ?? 1) - 1;
      if (left > 0) return void nodes.set(node, left);
      nodes.delete(node);
      if (nodes.size === 0) this.#fed.delete(output);
    };
  }
}
