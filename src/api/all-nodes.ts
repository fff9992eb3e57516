import type { FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import type { ConfigStore } from '#cluster';
import { readJson } from '../lib/read-json.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { API_REQUEST } from './peer-request.ts';
import { markStale } from './read-your-writes.ts';

/** What each node has for itself, asked of all of them. */
export class AllNodes {
  readonly #config: Pick<ConfigStore, 'position'>;
  readonly #others: OtherNodes | undefined;
  /** Why the last call of a node was not answered, by its id. */
  readonly #silent = new Map<string, string>();

  /** @param others undefined where this node alone is asked */
  constructor(config: Pick<ConfigStore, 'position'>, others: OtherNodes | undefined) {
    this.#config = config;
    this.#others = others;
  }

  /**
   * Makes the same call of every other node. A node that does not answer is left out, and the answer marked as stale.
   * @param items schema of the items of the list that a node answers
   * @returns what each node has, by its id; this one's under `own` where it is alone
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
      // consoles ask every few seconds: what stays the same is said once
      if (this.#silent.get(node.id) !== reason) log.warn({ node: node.id, reason }, `a node did not answer ${url}`);
      this.#silent.set(node.id, reason);
      markStale(reply);
    }
    return all;
  }
}
