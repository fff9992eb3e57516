import { randomUUID } from 'node:crypto';
import Type, { type Static } from 'typebox';
import type { Cluster } from '#cluster';
import { KilnError, kilnError, type ErrorCode } from '../../errors.ts';
import { askNode } from '../../origins/ask-node.ts';
import { readJson } from '../../origins/json.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';

const PREFIX = '/webrtc/';
const TIMEOUT_MS = 5000;

/** A request about a session, as any node may get it. */
export interface ResourceRequest {
  readonly method: 'PATCH' | 'DELETE';
  /** Last element of the session's path. */
  readonly key: string;
  /** Path of the endpoint that made it. */
  readonly endpoint: string;
  readonly ifMatch: string | undefined;
  readonly type: string | undefined;
  readonly body: string | undefined;
}

const ResourceAnswer = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String(),
});
export type ResourceAnswer = Static<typeof ResourceAnswer>;

/** What a node answers another: the error of `src/errors.ts`, by its parts, where there is no answer. */
const Reply = Type.Union([
  ResourceAnswer,
  Type.Object({
    error: Type.Object({
      code: Type.String(),
      status: Type.Integer({ minimum: 400, maximum: 599 }),
      message: Type.String(),
    }),
  }),
]);
type Reply = Static<typeof Reply>;

/**
 * Finds the node of a session that WHIP or WHEP made: its path names the life of the node that has it, so that a later request may
 * come to any node.
 */
export class ResourceNeighbours {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes' | 'forward'>;
  readonly #calls: PeerCalls;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes' | 'forward'>, calls: PeerCalls) {
    this.#cluster = cluster;
    this.#calls = calls;
  }

  /** The key of a session of this node: nobody can guess it. */
  newKey(): string {
    return `${randomUUID()}.${this.#cluster.self.incarnation}`;
  }

  /** @param change answers requests about sessions of this node; what it throws is thrown where they came from */
  serve(change: (request: ResourceRequest) => Promise<ResourceAnswer>): void {
    this.#calls.add(PREFIX, async ({ body }) => {
      const reply = await change(JSON.parse(body.toString()) as ResourceRequest).catch((error: unknown): Reply => {
        if (!(error instanceof KilnError)) throw error;
        return { error: { code: error.code, status: error.status, message: error.message } };
      });
      return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(reply)) };
    });
  }

  /**
   * Asks the node that has a session.
   * @returns undefined when that is this one, or there is no such node
   * @throws what that one threw, ownerUnreachable, ownerSilent
   */
  async ask(request: ResourceRequest): Promise<ResourceAnswer | undefined> {
    const { self } = this.#cluster;
    const incarnation = request.key.slice(request.key.indexOf('.') + 1);
    const node = this.#cluster.nodes().find((row) => row.incarnation === incarnation);
    if (incarnation === self.incarnation || node === undefined) return undefined;
    const call = { method: 'POST', path: PREFIX, headers: {}, body: Buffer.from(JSON.stringify(request)) };
    const { status, body } = await askNode(this.#cluster, node, call, TIMEOUT_MS);
    const reply = status === 200 ? readJson(Reply, body) : undefined;
    if (reply === undefined) throw kilnError('ownerSilent');
    if ('error' in reply) throw new KilnError(reply.error.code as ErrorCode, reply.error.status, reply.error.message);
    return reply;
  }
}
