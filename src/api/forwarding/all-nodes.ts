import type { FastifyReply, FastifyRequest } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import type { ConfigStore, NodeIdentity } from '#cluster';
import { kilnError } from '../../errors.ts';
import { readJson } from '../../lib/read-json.ts';
import type { OtherNodes } from '../../peers/other-nodes.ts';
import { API_REQUEST } from './peer-request.ts';
import { markStale } from './read-your-writes.ts';
import { carried, noteCarried, passOn } from './stream-owner.ts';

const CHANGE_TIMEOUT_MS = 10_000;

type Asked = Pick<FastifyRequest, 'url' | 'id' | 'host' | 'log'>;

/** Collects what each node has of its own. */
export class AllNodes {
  readonly #config: Pick<ConfigStore, 'position'>;
  readonly #others: OtherNodes | undefined;
  /** Reason for which a node did not answer its last call, by the node's id. */
  readonly #silent = new Map<string, string>();
  readonly #user: string;

  /**
   * @param others undefined on a node that runs alone
   * @param user name of the callers, for nodes that change something
   */
  constructor(config: Pick<ConfigStore, 'position'>, others: OtherNodes | undefined, user = '') {
    this.#config = config;
    this.#others = others;
    this.#user = user;
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
    const { answers } = await this.each({ url, id, host, log }, reply, Type.Array(items));
    for (const [node, list] of answers) all.set(node.id, list as readonly Static<S>[]);
    return all;
  }

  /**
   * Makes the same GET to every other node. The answer is marked as stale when a node does not answer.
   * @param payload schema of what a node answers
   * @param isOfOne whether the call names an object that one node has: the 404 of the others is no failure
   * @returns payloads by node, and the ids of nodes that did not answer
   */
  async each<S extends TSchema>(
    { url, id, host, log }: Asked,
    reply: FastifyReply,
    payload: S,
    isOfOne = false,
  ): Promise<{ readonly answers: Map<NodeIdentity, Static<S>>; readonly silent: string[] }> {
    const answers = new Map<NodeIdentity, Static<S>>();
    const silent: string[] = [];
    const Answer = Type.Object({ response: payload });
    const request = { method: 'GET', url, requestId: id, host, position: this.#config.position };
    for (const { node, answer, error } of (await this.#others?.ask(API_REQUEST, request)) ?? []) {
      const body = answer?.status === 200 ? readJson(Answer, Buffer.from(answer.body)) : undefined;
      const found = (body as { readonly response: Static<S> } | undefined)?.response;
      if (found !== undefined) answers.set(node, found);
      if (found !== undefined || (isOfOne && answer?.status === 404)) {
        this.#silent.delete(node.id);
        continue;
      }
      silent.push(node.id);
      const reason = error?.message ?? `status ${answer?.status}`;
      // consoles ask every few seconds: each reason is logged once
      if (this.#silent.get(node.id) !== reason)
        log.warn({ node: node.id, reason }, `a node did not answer ${url}: the answer lacks its entries`);
      this.#silent.set(node.id, reason);
      markStale(reply);
    }
    return { answers, silent };
  }

  /** Has another node answer a call that changes something of its own. @throws recordingNodeSilent */
  async pass(request: FastifyRequest, reply: FastifyReply, node: NodeIdentity): Promise<FastifyReply> {
    noteCarried(request, node.id);
    const call = { ...carried(request, this.#user), position: this.#config.position };
    const { answer, error } = (await this.#others?.askOne(node, API_REQUEST, call, CHANGE_TIMEOUT_MS)) ?? {};
    if (answer !== undefined) return passOn(answer, reply);
    throw Object.assign(kilnError('recordingNodeSilent', node.id), { cause: error });
  }
}
