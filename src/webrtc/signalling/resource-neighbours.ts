import { randomUUID } from 'node:crypto';
import Type, { type Static } from 'typebox';
import type { Cluster } from '#cluster';
import { definePeerCall } from '../../peers/peer-call.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';

const TIMEOUT_MS = 5000;

const ResourceRequest = Type.Object({
  method: Type.Union([Type.Literal('GET'), Type.Literal('PATCH'), Type.Literal('DELETE')]),
  /** Last element of the session's path. */
  key: Type.String(),
  /** Path of the endpoint that created the session, if the request's URL has it. */
  endpoint: Type.Optional(Type.String()),
  ifMatch: Type.Optional(Type.String()),
  type: Type.Optional(Type.String()),
  body: Type.Optional(Type.String()),
});
/** Request to find, change or end a session, on any node. */
export type ResourceRequest = Readonly<Static<typeof ResourceRequest>>;

const ResourceAnswer = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String(),
});
export type ResourceAnswer = Static<typeof ResourceAnswer>;

/** Forwards a request to the session's node. */
const CHANGE_RESOURCE = definePeerCall('webrtc/resource', ResourceRequest, ResourceAnswer);

/**
 * Finds the node of a WHIP or WHEP session. The session's path contains the incarnation of its node, so that later
 * requests may go to any node.
 */
export class ResourceNeighbours {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly #calls: PeerCalls;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, calls: PeerCalls) {
    this.#cluster = cluster;
    this.#calls = calls;
  }

  /** Makes an unguessable key for a session of this node. */
  newKey(): string {
    return `${randomUUID()}.${this.#cluster.self.incarnation}`;
  }

  /** Serves requests of other nodes. @param change answers for sessions of this node; the asking node throws its errors */
  serve(change: (request: ResourceRequest) => Promise<ResourceAnswer>): void {
    this.#calls.answer(CHANGE_RESOURCE, change);
  }

  /**
   * Forwards a request to the session's node.
   * @returns undefined when that is this node, or it does not exist
   * @throws errors of that node, ownerUnreachable, ownerSilent, callUnknown
   */
  async ask(request: ResourceRequest): Promise<ResourceAnswer | undefined> {
    const { self } = this.#cluster;
    const incarnation = request.key.slice(request.key.indexOf('.') + 1);
    const node = this.#cluster.nodes().find((row) => row.incarnation === incarnation);
    if (incarnation === self.incarnation || node === undefined) return undefined;
    return await this.#calls.call(node, CHANGE_RESOURCE, request, TIMEOUT_MS);
  }
}
