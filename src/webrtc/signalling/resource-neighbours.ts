import { randomUUID } from 'node:crypto';
import Type, { type Static } from 'typebox';
import type { Cluster } from '#cluster';
import { definePeerCall } from '../../peers/peer-call.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';

const TIMEOUT_MS = 5000;

const ResourceRequest = Type.Object({
  method: Type.Union([Type.Literal('PATCH'), Type.Literal('DELETE')]),
  /** Last element of the session's path. */
  key: Type.String(),
  /** Path of the endpoint that made it, where the client has named it. */
  endpoint: Type.Optional(Type.String()),
  ifMatch: Type.Optional(Type.String()),
  type: Type.Optional(Type.String()),
  body: Type.Optional(Type.String()),
});
/** A request about a session, as any node may get it. */
export type ResourceRequest = Readonly<Static<typeof ResourceRequest>>;

const ResourceAnswer = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String(),
});
export type ResourceAnswer = Static<typeof ResourceAnswer>;

/** Carries a request to the node that has the session. */
const CHANGE_RESOURCE = definePeerCall('webrtc/resource', ResourceRequest, ResourceAnswer);

/**
 * Finds the node of a session that WHIP or WHEP made: its path names the life of the node that has it, so that a later request may
 * come to any node.
 */
export class ResourceNeighbours {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly #calls: PeerCalls;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, calls: PeerCalls) {
    this.#cluster = cluster;
    this.#calls = calls;
  }

  /** The key of a session of this node: nobody can guess it. */
  newKey(): string {
    return `${randomUUID()}.${this.#cluster.self.incarnation}`;
  }

  /** @param change answers requests about sessions of this node; what it throws is thrown where they came from */
  serve(change: (request: ResourceRequest) => Promise<ResourceAnswer>): void {
    this.#calls.answer(CHANGE_RESOURCE, change);
  }

  /**
   * Asks the node that has a session.
   * @returns undefined when that is this one, or there is no such node
   * @throws what that one threw, ownerUnreachable, ownerSilent, callUnknown
   */
  async ask(request: ResourceRequest): Promise<ResourceAnswer | undefined> {
    const { self } = this.#cluster;
    const incarnation = request.key.slice(request.key.indexOf('.') + 1);
    const node = this.#cluster.nodes().find((row) => row.incarnation === incarnation);
    if (incarnation === self.incarnation || node === undefined) return undefined;
    return await this.#calls.call(node, CHANGE_RESOURCE, request, TIMEOUT_MS);
  }
}
