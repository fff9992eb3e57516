import { randomUUID } from 'node:crypto';
import { kilnError } from '../../errors.ts';
import { mediaType } from '../../lib/media-type.ts';
import { namesEtag } from '../../lib/etag.ts';
import type { PeerSession } from './handler.ts';
import type { ResourceAnswer, ResourceNeighbours, ResourceRequest } from './resource-neighbours.ts';
import { FRAGMENT_TYPE, isFragment, parseFragment, writeFragment } from './sdp-fragment.ts';

interface Resource {
  readonly session: PeerSession;
  /** Path of the endpoint that created the session. */
  readonly endpoint: string;
  etag: string;
  remoteUfrag: string;
}

/** WHIP and WHEP sessions of this node, by key; forwards requests for those of other nodes. */
export class Resources {
  readonly #neighbours: ResourceNeighbours;
  readonly #resources = new Map<string, Resource>();

  constructor(neighbours: ResourceNeighbours) {
    this.#neighbours = neighbours;
    neighbours.serve((request) => this.#change(request));
  }

  /** Makes an unguessable key for a new session. */
  newKey(): string {
    return this.#neighbours.newKey();
  }

  /** Adds a session. @returns its entity-tag */
  add(key: string, session: PeerSession, endpoint: string, remoteUfrag: string): string {
    const etag = newEtag();
    this.#resources.set(key, { session, endpoint, etag, remoteUfrag });
    return etag;
  }

  delete(key: string): void {
    this.#resources.delete(key);
  }

  /**
   * Finds, changes or ends a session, of this node or of another one (RFC 9725 sections 4.1 to 4.3).
   * @throws sessionNotFound, unsupportedMediaType, preconditionRequired, preconditionFailed, sdpMalformed,
   * iceRestartIncomplete, and errors of ResourceNeighbours.ask()
   */
  async request(request: ResourceRequest): Promise<ResourceAnswer> {
    return (await this.#neighbours.ask(request)) ?? (await this.#change(request));
  }

  async #change(request: ResourceRequest): Promise<ResourceAnswer> {
    const resource = this.#resources.get(request.key);
    const { endpoint = resource?.endpoint } = request;
    if (resource === undefined || resource.endpoint !== endpoint) throw kilnError('sessionNotFound');
    // nothing represents a session (RFC 9725 section 4.1)
    if (request.method === 'GET') return { status: 204, headers: {}, body: '' };
    if (request.method === 'PATCH') return await patch(resource, request);
    // DELETE ignores entity-tags (RFC 9725 section 4.3.1)
    resource.session.close('the peer left');
    return { status: 200, headers: {}, body: '' };
  }
}

/** Quoted, too, as in the examples of RFC 9725. */
const ANY = /^\s*(?:\*|"\*")\s*$/;

async function patch(resource: Resource, { type, ifMatch, body }: ResourceRequest): Promise<ResourceAnswer> {
  requireType(type, body, FRAGMENT_TYPE);
  if (ifMatch === undefined) throw kilnError('preconditionRequired');
  const isAny = ANY.test(ifMatch);
  if (!isAny && !namesEtag(ifMatch, resource.etag)) throw kilnError('preconditionFailed');
  if (!isFragment(body)) throw kilnError('sdpMalformed', 'it is not an SDP fragment');
  const { ufrag, pwd } = parseFragment(body);
  const isNew = ufrag === undefined ? pwd !== undefined : ufrag !== resource.remoteUfrag;
  if (!isNew) return { status: 204, headers: {}, body: '' };
  if (!isAny || ufrag === undefined || pwd === undefined) throw kilnError('iceRestartIncomplete');
  const ice = await resource.session.restartIce();
  resource.remoteUfrag = ufrag;
  resource.etag = newEtag();
  return {
    status: 200,
    headers: { 'content-type': FRAGMENT_TYPE, etag: resource.etag },
    body: writeFragment(ice, resource.session.media, resource.session.candidates),
  };
}

/** @throws unsupportedMediaType, also for a body without a type, which no parser handles */
export function requireType(given = '', body: string | undefined, type: string): asserts body is string {
  if (mediaType(given) !== type || body === undefined) throw kilnError('unsupportedMediaType', type);
}

function newEtag(): string {
  return `"${randomUUID().slice(0, 8)}"`;
}
