import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { allowOrigin } from '../../access/cross-domains.ts';
import type { CrossDomainsConfig, WebrtcBindConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { parseRemoteDescription, SdpError, type RemoteDescription } from '../../webrtc/remote-description.ts';
import { answerTo, peerRole, planAnswer } from './description.ts';
import type { ViewerDesk, ViewRequest } from './desk.ts';
import { FRAGMENT_TYPE, isFragment, parseFragment, writeFragment } from './sdp-fragment.ts';
import type { WebrtcSession } from './session.ts';
import type { ResourceAnswer, ResourceRequest, WhepNeighbours } from './whep-neighbours.ts';

const SDP_TYPE = 'application/sdp';
const MAX_SDP = 64 * 1024;
const ENDPOINT_METHODS = 'OPTIONS, POST';
const RESOURCE_METHODS = 'DELETE, OPTIONS, PATCH';
/** Other publishers answer reads under the same paths, where preflights come here. */
const CORS_METHODS = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST';
const CORS_MAX_AGE = '86400';

interface Resource {
  readonly session: WebrtcSession;
  /** Path of the endpoint that made it. */
  readonly endpoint: string;
  etag: string;
  remoteUfrag: string;
}

interface Path {
  app: string;
  stream: string;
  name?: string;
}

type IceServers = WebrtcBindConfig['iceServers'];

export interface WhepOptions {
  readonly desk: ViewerDesk;
  readonly neighbours: WhepNeighbours;
  readonly registry: Registry;
  readonly iceServers: IceServers;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains: CrossDomainsConfig | undefined;
}

const EVERYBODY: CrossDomainsConfig = { url: ['*'], header: [] };

/**
 * WHEP (draft-ietf-wish-whep, with the rules of RFC 9725 for what both share): an offer is posted to
 * `/app/stream[/playlist]`, the session lives under `/app/stream/<key>`.
 */
export function whepRoutes({ desk, neighbours, registry, iceServers, crossDomains = EVERYBODY }: WhepOptions): FastifyPluginAsync {
  const resources = new Map<string, Resource>();
  const links = iceServers.flatMap(linksOf);
  neighbours.serve(change);

  return async (fastify) => {
    fastify.removeAllContentTypeParsers();
    const types = [SDP_TYPE, FRAGMENT_TYPE];
    fastify.addContentTypeParser(types, { parseAs: 'string' }, (_request, body, done) => done(null, body));
    fastify.addHook('onRequest', async (request, reply) => addCorsHeaders(registry, crossDomains, request, reply));
    fastify.setErrorHandler(async (error: Error & { statusCode?: number }, _request, reply) => {
      const status = error instanceof KilnError ? error.status : (error.statusCode ?? 500);
      const later = status === 503 || (error instanceof KilnError && error.code === 'streamNotLive');
      if (later) reply.header('retry-after', '1');
      if (status === 415) reply.header('accept-post', SDP_TYPE).header('accept-patch', FRAGMENT_TYPE);
      reply.code(status).type('text/plain; charset=utf-8');
      if (status < 500 || error instanceof KilnError) return error.message;
      reply.log.error({ err: error }, 'a WebRTC request failed');
      return 'Internal error';
    });

    const post = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const view = viewOf(request);
      const direction = view.query.get('direction') ?? 'whep';
      if (direction === 'whip' || direction === 'send') throw kilnError('webrtcIngestUnavailable');
      const body = textOf(request);
      requireType(request.headers['content-type'], body, SDP_TYPE);
      const offer = readOffer(body);
      const admission = await desk.admit(view);
      const session = await desk.open(admission, planAnswer(admission, offer));
      const role = peerRole(offer.setup);
      try {
        await session.connect({ fingerprint: offer.fingerprint, role, reports: true });
      } catch (error) {
        session.close('DTLS could not be set up');
        throw error;
      }
      const key = neighbours.newKey();
      const endpoint = endpointOf(view.app, view.stream);
      const resource = { session, endpoint, etag: newEtag(), remoteUfrag: offer.iceUfrag };
      resources.set(key, resource);
      session.once('close', () => resources.delete(key));
      reply.code(201).type(SDP_TYPE).headers({
        location: `${endpoint}/${key}?direction=whep`,
        etag: resource.etag,
        'accept-patch': FRAGMENT_TYPE,
      });
      if (links.length > 0) reply.header('link', links);
      return answerTo(offer, session, role === 'server' ? 'active' : 'passive');
    };

    const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const { app, stream, name = '' } = request.params as Path;
      const { 'if-match': ifMatch, 'content-type': type } = request.headers;
      const method = request.method as 'PATCH' | 'DELETE';
      const asked = { method, key: name, endpoint: endpointOf(app, stream), ifMatch, type, body: textOf(request) };
      const { status, headers, body } = (await neighbours.ask(asked)) ?? (await change(asked));
      reply.code(status).headers(headers);
      return body;
    };

    const options = async (_request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      reply.headers({ 'accept-post': SDP_TYPE, 'accept-patch': FRAGMENT_TYPE, allow: CORS_METHODS });
      return '';
    };

    const refuse = (allowed: string) => async (request: FastifyRequest, reply: FastifyReply) => {
      reply.header('allow', allowed);
      throw kilnError('methodNotAllowed', request.method);
    };

    const endpoint = '/:app/:stream';
    const named = '/:app/:stream/:name';
    for (const url of [endpoint, named]) {
      fastify.post(url, { bodyLimit: MAX_SDP }, post);
      fastify.options(url, options);
      fastify.put(url, refuse(url === endpoint ? ENDPOINT_METHODS : RESOURCE_METHODS));
    }
    fastify.patch(named, { bodyLimit: MAX_SDP }, answer);
    fastify.delete(named, answer);
    fastify.route({ method: ['PATCH', 'DELETE'], url: endpoint, handler: refuse(ENDPOINT_METHODS) });
  };

  /**
   * Changes or ends a session of this node.
   * @throws sessionNotFound, unsupportedMediaType, preconditionRequired, preconditionFailed, sdpMalformed
   */
  async function change(request: ResourceRequest): Promise<ResourceAnswer> {
    const resource = resources.get(request.key);
    if (resource === undefined || resource.endpoint !== request.endpoint) throw kilnError('sessionNotFound');
    if (request.method === 'PATCH') return await patch(resource, request);
    resource.session.close('the viewer left');
    return { status: 200, headers: {}, body: '' };
  }
}

async function patch(resource: Resource, { type, ifMatch, body }: ResourceRequest): Promise<ResourceAnswer> {
  requireType(type, body, FRAGMENT_TYPE);
  if (ifMatch === undefined) throw kilnError('preconditionRequired');
  if (ifMatch !== '*' && ifMatch !== resource.etag) throw kilnError('preconditionFailed');
  if (!isFragment(body)) throw kilnError('sdpMalformed', 'it is no SDP fragment');
  const { ufrag, pwd } = parseFragment(body);
  const restart = ifMatch === '*' && ufrag !== undefined && pwd !== undefined && ufrag !== resource.remoteUfrag;
  if (!restart) return { status: 204, headers: {}, body: '' };
  const ice = await resource.session.restartIce();
  resource.remoteUfrag = ufrag;
  resource.etag = newEtag();
  return {
    status: 200,
    headers: { 'content-type': FRAGMENT_TYPE, etag: resource.etag },
    body: writeFragment(ice, resource.session.media, resource.session.candidates),
  };
}

function endpointOf(app: string, stream: string): string {
  return `/${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;
}

function textOf({ body }: FastifyRequest): string | undefined {
  return typeof body === 'string' ? body : undefined;
}

function viewOf(request: FastifyRequest): ViewRequest {
  const { app, stream, name } = request.params as Path;
  const mark = request.url.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : request.url.slice(mark));
  const { hostname, ip } = request;
  return { hostName: hostname, client: ip, app, stream, ...(name === undefined ? {} : { playlist: name }), query };
}

/** @throws sdpMalformed */
function readOffer(body: string): RemoteDescription {
  try {
    return parseRemoteDescription(body);
  } catch (error) {
    if (error instanceof SdpError) throw kilnError('sdpMalformed', error.message);
    throw error;
  }
}

/** @throws unsupportedMediaType, also for a body without a type, which passes by the parsers */
function requireType(given = '', body: string | undefined, type: string): asserts body is string {
  if (given.split(';')[0]?.trim().toLowerCase() !== type || body === undefined) throw kilnError('unsupportedMediaType', type);
}

function newEtag(): string {
  return `"${randomUUID().slice(0, 8)}"`;
}

/** Web Linking form of RFC 9725 section 4.6. */
function linksOf({ urls, userName, credential }: IceServers[number]): string[] {
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
  const secret =
    userName === undefined || credential === undefined
      ? ''
      : `; username=${quoted(userName)}; credential=${quoted(credential)}; credential-type="password"`;
  return urls.map((url) => `<${url}>; rel="ice-server"${secret}`);
}

/** What the application's CrossDomains allow, or those for applications that have none. */
function addCorsHeaders(
  registry: Registry,
  others: CrossDomainsConfig,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { app } = request.params as Partial<Path>;
  const application = registry.resolve(request.hostname)?.applications.get(app ?? '');
  const crossDomains = application?.config.publishers.webrtc?.crossDomains ?? others;
  const allowed = allowOrigin(crossDomains)(request.headers.origin);
  if (allowed === undefined) return;
  reply.headers({
    'access-control-allow-origin': allowed,
    'access-control-expose-headers': 'Location, Link, ETag, Accept-Patch',
  });
  if (allowed !== '*') reply.header('vary', 'Origin');
  if (request.method === 'OPTIONS') {
    reply.headers({
      'access-control-allow-methods': CORS_METHODS,
      'access-control-allow-headers': request.headers['access-control-request-headers'] ?? 'Content-Type, If-Match',
      'access-control-max-age': CORS_MAX_AGE,
      'access-control-allow-private-network': 'true',
    });
  }
  for (const { key, value } of crossDomains.header) reply.header(key, value);
}
