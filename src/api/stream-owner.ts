import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Cluster, NodeIdentity, PeerRequest, PeerResponse } from '#cluster';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { askNode } from '../origins/ask-node.ts';
import type { StreamDirectory } from '../origins/stream-directory.ts';
import type { StreamName } from '../origins/stream-key.ts';
import type { StreamNames } from '../origins/stream-names.ts';
import { STALE } from './read-your-writes.ts';

/** Where other nodes are called for what only they can answer; the rest of the path is that of the management API. */
export const PEER_API = '/api';

const TIMEOUT_MS = 10_000;
/** What of an answer is the owner's word; the rest is said by the node that was asked. */
export const OWNERS_WORD = ['content-type', STALE];

/** How owners are found and called. */
export interface StreamOwnersOptions {
  readonly registry: Registry;
  readonly names: StreamNames;
  readonly cluster: Pick<Cluster, 'forward'>;
  readonly directory: StreamDirectory;
  readonly log: Logger;
}

/** Takes calls about streams to the nodes that have them. */
export class StreamOwners {
  readonly #options: StreamOwnersOptions;

  constructor(options: StreamOwnersOptions) {
    this.#options = options;
  }

  /** Whether this node has a live input stream, and surely no other has it. */
  isHere({ vhost, app, stream }: StreamName): boolean {
    const { registry, names } = this.#options;
    const input = registry.vhosts.get(vhost)?.applications.get(app)?.stream(stream);
    return input !== undefined && names.isCertain(input);
  }

  /**
   * Lets the node that has a stream answer a call, which is made once at most.
   * @returns undefined when this node is to answer: it has the stream, or nobody has
   * @throws ownerUnreachable, ownerSilent
   */
  async ask(name: StreamName, request: PeerRequest): Promise<PeerResponse | undefined> {
    let asked: NodeIdentity | undefined;
    for (;;) {
      const owner = await this.#options.directory.ownerOf(name);
      if (owner === undefined || owner.isSelf || !owner.live) return undefined;
      // it is still the one that cannot be reached
      if (asked?.incarnation === owner.node.incarnation) throw kilnError('ownerUnreachable');
      const answer = await this.#forward(owner.node, request);
      if (answer !== undefined) return answer;
      asked = owner.node;
    }
  }

  /** @returns undefined when the call has not reached the node; @throws ownerSilent */
  async #forward(node: NodeIdentity, request: PeerRequest): Promise<PeerResponse | undefined> {
    const { cluster, log } = this.#options;
    try {
      return await askNode(cluster, node, request, TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const { method, path } = request;
      const call = { node: node.id, method, path, reason: (error.cause as Error).message };
      if (error.code === 'ownerUnreachable') {
        log.warn(call, 'a call could not be forwarded to the node that has the stream');
        return undefined;
      }
      log.error(call, 'a call was forwarded to the node that has the stream, which did not answer');
      throw error;
    }
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Any node answers it, whoever has the stream that its path names. */
    readonly isAnsweredHere?: boolean;
  }
}

/** Options of a route that any node answers. */
export const ANSWERED_HERE = { isAnsweredHere: true };

/** Lets the routes of `app` whose path names a stream be answered by the node that has it. */
export function answerAtOwner(app: FastifyInstance, owners: StreamOwners): void {
  app.addHook('preHandler', async (request, reply) => {
    const name = request.params as Partial<StreamName>;
    const { isAnsweredHere = false } = request.routeOptions.config;
    if (isAnsweredHere || !isStream(name) || owners.isHere(name)) return;
    const answer = await owners.ask(name, carried(request));
    if (answer !== undefined) return pass(answer, reply);
  });
}

function isStream(name: Partial<StreamName>): name is StreamName {
  return name.stream !== undefined;
}

function carried({ method, url, id, body, headers }: FastifyRequest): PeerRequest {
  return {
    // an answer without its body is made of the whole one here
    method: method === 'HEAD' ? 'GET' : method,
    path: `${PEER_API}${url}`,
    headers: { 'x-request-id': id, host: headers.host ?? '' },
    body: body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body)),
  };
}

function pass({ status, headers, body }: PeerResponse, reply: FastifyReply): FastifyReply {
  for (const name of OWNERS_WORD) if (headers[name] !== undefined) reply.header(name, headers[name]);
  return reply.code(status).send(body.toString());
}
