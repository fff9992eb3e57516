import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isSameIncarnation, type Cluster, type NodeIdentity } from '#cluster';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import type { StreamName } from '../../directory/stream-key.ts';
import type { StreamNames } from '../../directory/stream-names.ts';
import { API_REQUEST, type ApiAnswer, type ApiRequest } from './peer-request.ts';
import { markStale } from './read-your-writes.ts';

const TIMEOUT_MS = 10_000;
const NAMES_STREAM = /:stream\b/;

export interface StreamOwnersOptions {
  readonly registry: Registry;
  readonly names: StreamNames;
  readonly cluster: Pick<Cluster, 'config'>;
  readonly calls: PeerCalls;
  readonly directory: StreamDirectory;
  readonly log: Logger;
}

/** Forwards calls about streams to the nodes that own them. */
export class StreamOwners {
  readonly #options: StreamOwnersOptions;

  constructor(options: StreamOwnersOptions) {
    this.#options = options;
  }

  /** Whether this node has a live input stream, and certainly no other node has it. */
  isHere({ vhost, app, stream }: StreamName): boolean {
    const { registry, names } = this.#options;
    const input = registry.vhosts.get(vhost)?.applications.get(app)?.stream(stream);
    return input !== undefined && names.isCertain(input);
  }

  /**
   * Has the owner of a stream answer a call, which is executed once at most. To be called when this node has caught up with the
   * others (`readYourWrites`).
   * @param onAsked called for each node that is asked
   * @returns undefined when this node must answer: it has the stream, or no node has it
   * @throws ownerUnreachable, ownerSilent, callUnknown
   */
  async ask(name: StreamName, request: ApiRequest, onAsked: (node: string) => void): Promise<ApiAnswer | undefined> {
    const { directory } = this.#options;
    let asked: NodeIdentity | undefined;
    let owner = directory.knownOwner(name);
    for (; ; owner = await directory.ownerOf(name)) {
      if (owner === undefined || owner.isSelf || !owner.live) return undefined;
      // the owner is still the node that cannot be reached
      if (isSameIncarnation(asked, owner.node)) throw kilnError('ownerUnreachable');
      onAsked(owner.node.id);
      const answer = await this.#forward(owner.node, request);
      if (answer !== undefined) return answer;
      asked = owner.node;
    }
  }

  /** @returns undefined when the call has not reached the node; @throws ownerSilent, callUnknown */
  async #forward(node: NodeIdentity, request: ApiRequest): Promise<ApiAnswer | undefined> {
    const { cluster, calls, log } = this.#options;
    try {
      return await calls.call(node, API_REQUEST, { ...request, position: cluster.config.position }, TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const { method, url } = request;
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      const call = { node: node.id, method, url, reason };
      if (error.code === 'ownerUnreachable') {
        log.warn(call, 'a call could not be forwarded to the node that has the stream');
        return undefined;
      }
      log.error(
        call,
        'a call was forwarded to the node that has the stream, which did not answer: it may have been executed',
      );
      throw error;
    }
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether any node answers, even if the path names a stream. */
    readonly isAnsweredHere?: boolean;
  }
}

/** Options of a route that any node answers. */
export const ANSWERED_HERE = { isAnsweredHere: true };

const carriedTo = new WeakMap<FastifyRequest, string>();

/** Id of the node that answered a call, or was asked to; undefined for this one. */
export function answeredBy(request: FastifyRequest): string | undefined {
  return carriedTo.get(request);
}

export function noteCarried(request: FastifyRequest, node: string): void {
  carriedTo.set(request, node);
}

/**
 * Forwards calls of routes of `app` whose path names a stream to the owner of the stream.
 * @param user name of the caller, for the owner
 */
export function answerAtOwner(app: FastifyInstance, owners: StreamOwners, user: string): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.isAnsweredHere === true || !NAMES_STREAM.test(route.url)) return;
    route.preHandler = [route.preHandler ?? [], atOwner].flat();
  });

  function atOwner(request: FastifyRequest, reply: FastifyReply, done: () => void): void | Promise<unknown> {
    const name = request.params as StreamName;
    return owners.isHere(name) ? done() : forward(name, request, reply);
  }

  async function forward(name: StreamName, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const answer = await owners.ask(name, carried(request, user), (node) => noteCarried(request, node));
    if (answer !== undefined) return passOn(answer, reply);
  }
}

/** The call that another node answers in place of this one. */
export function carried({ method, url, id, ip, body, headers }: FastifyRequest, user: string): ApiRequest {
  return {
    // the answer to a HEAD is made here, from that to a GET
    method: method === 'HEAD' ? 'GET' : method,
    url,
    requestId: id,
    host: headers.host ?? '',
    user,
    remote: ip,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
}

/** Answers as another node did. */
export function passOn({ status, type, stale, body }: ApiAnswer, reply: FastifyReply): FastifyReply {
  if (type !== undefined) reply.header('content-type', type);
  if (stale) markStale(reply);
  return reply.code(status).send(body);
}
