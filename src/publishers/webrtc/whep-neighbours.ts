import { randomUUID } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { OutcomeUnknownError, UnreachableError, type Cluster, type NodeIdentity, type PeerRequest, type PeerResponse } from '#cluster';
import { KilnError, kilnError, type ErrorCode } from '../../errors.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import { readJson } from '../../origins/read-json.ts';

const PREFIX = '/whep/';
const TIMEOUT_MS = 5000;

const ResourceRequest = Type.Object({
  method: Type.Union([Type.Literal('PATCH'), Type.Literal('DELETE')]),
  /** Last element of the session's path. */
  key: Type.String(),
  /** Path of the endpoint that made it. */
  endpoint: Type.String(),
  ifMatch: Type.Optional(Type.String()),
  type: Type.Optional(Type.String()),
  body: Type.Optional(Type.String()),
});

/** A request about a session, as any node may get it. */
export type ResourceRequest = Readonly<Static<typeof ResourceRequest>>;

const ResourceAnswer = Type.Object({
  status: Type.Integer({ minimum: 100, maximum: 599 }), headers: Type.Record(Type.String(), Type.String()), body: Type.String(),
});

/** What is to be answered to one. */
export type ResourceAnswer = Readonly<Static<typeof ResourceAnswer>>;

/** What a node answers another: the error of this table, by its parts, where there is no answer. */
const Reply = Type.Union([
  ResourceAnswer,
  Type.Object({ error: Type.Object({ code: Type.String(), status: Type.Integer(), message: Type.String() }) }),
]);
type Reply = Static<typeof Reply>;

/**
 * Finds the node of a WHEP session: its path names the life of the node that has it, so that a later request may
 * come to any node.
 */
export class WhepNeighbours {
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
      const request = readJson(body, ResourceRequest);
      if (request === undefined) return { status: 400, headers: {}, body: Buffer.alloc(0) };
      const reply = await change(request).catch((error: unknown): Reply => {
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
    const { body } = await this.#forward(node, { method: 'POST', path: PREFIX, headers: {}, body: Buffer.from(JSON.stringify(request)) });
    const reply = readJson(body, Reply);
    // it went wrong over there, or was not understood
    if (reply === undefined) throw kilnError('ownerSilent');
    if ('error' in reply) throw new KilnError(reply.error.code as ErrorCode, reply.error.status, reply.error.message);
    return reply;
  }

  async #forward(node: NodeIdentity, request: PeerRequest): Promise<PeerResponse> {
    try {
      return await this.#cluster.forward(node, request, TIMEOUT_MS);
    } catch (error) {
      if (error instanceof UnreachableError) throw kilnError('ownerUnreachable');
      if (error instanceof OutcomeUnknownError) throw kilnError('ownerSilent');
      throw error;
    }
  }
}
