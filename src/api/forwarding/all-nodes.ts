import type { FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import type { ConfigStore } from '#cluster';
import { readJson } from '../../lib/read-json.ts';
import type { OtherNodes } from '../../peers/other-nodes.ts';
import { API_REQUEST } from './peer-request.ts';
import { markStale } from './read-your-writes.ts';

/** Collects lists that each node has of its own. */
export class AllNodes {
  readonly #config: Pick<ConfigStore, 'position'>;
  readonly #others: OtherNodes | undefined;
  /** Reason for which a node did not answer its last call, by the node's id. */
  readonly #silent = new Map<string, string>();

  /** @param others undefined on a node that runs alone */
  constructor(config: Pick<ConfigStore, 'position'>, others: OtherNodes | undefined) {
    this.#config = config;
    this.#others = others;
  }

  /**
   * Makes the same call to every other node. A node that does not answer is left out, and the answer marked as stale.
   * @param items schema of the items of the list that a node answers
   * @returns lists by node id; that of a node that runs alone under `own`
   */
  async ask<S extends TSchema>(
    { url, id, host, log }: FastifyRequest,
    reply: FastifyReply,
    items: S,
    own: readonly Static<S>[],
  ): Promise<Map<string, readonly Static<S>[]>> {
    const others = this.#others;
    const all = new Map<string, readonly Static<S>[]>([[others?.self.id ?? 'own', own]]);
    if (others === undefined) return all;
    const Answer = Type.Object({ response: Type.Array(items) });
    const request = { method: 'GET', url, requestId: id, host, position: this.#config.position };
    for (const { node, answer, error } of await others.ask(API_REQUEST, request)) {
      const list = answer?.status === 200 ? readJson(Answer, Buffer.from(answer.body))?.response : undefined;
      if (list !== undefined) {
        all.set(node.id, list as readonly Static<S>[]);
        this.#silent.delete(node.id);
        continue;
      }
      const reason = error?.message ?? `status ${answer?.status}`;
      // consoles ask every few seconds: each reason is logged once
      if (this.#silent.get(node.id) !== reason)
        log.warn({ node: node.id, reason }, `a node did not answer ${url}: the answer lacks its entries`);
      this.#silent.set(node.id, reason);
      markStale(reply);
    }
    return all;
  }
}
