import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from '../../access/access.ts';
import { challengeHeaders } from '../../access/challenge.ts';
import { followsRedirects } from '../../access/cross-domains.ts';
import { goneSignal } from '../../access/http-request.ts';
import type { Arrival, Redirects } from '../../access/redirects.ts';
import type { AccessRequest } from '../../access/request.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { takeMeantTypes } from '../../lib/media-type.ts';
import { iceServersFor, linkHeaders } from '../ice-servers.ts';
import { addCorsHeaders } from './cors.ts';
import type { ModuleSettings, SignallingHandler, SignallingHandlers } from './handler.ts';
import { accessOf, directionOf, hasDirection, unavailable, type PeerRequest } from './request.ts';
import { requireType, type Resources } from './resources.ts';
import { FRAGMENT_TYPE } from './sdp-fragment.ts';
import { isKey, TARGET, targetConstraint } from './target-constraint.ts';

const SDP_TYPE = 'application/sdp';
const MAX_SDP = 64 * 1024;
const ENDPOINT_METHODS = 'GET, HEAD, OPTIONS, POST';
const RESOURCE_METHODS = 'DELETE, GET, HEAD, OPTIONS, PATCH';
/** Seconds after which a player asks again for a stream that is not live, or a server that is busy. */
const RETRY_AFTER = '1';

interface Path {
  app: string;
  stream: string;
  name?: string;
}

export interface HttpRoutesOptions {
  readonly handlers: SignallingHandlers;
  readonly resources: Resources;
  /** Logs peers that are rejected before their admission. */
  readonly access: Pick<Access, 'report'>;
  readonly redirects: Redirects;
  /** For applications without CrossDomains of their own. */
  readonly crossDomains: CrossDomainsConfig | undefined;
}

const EVERYBODY: CrossDomainsConfig = { url: ['*'], header: [] };

/**
 * WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep, with the rules of RFC 9725 for what both share): an offer is posted
 * to `/app/stream[/playlist]?direction=whip|whep`, the session lives under `/app/stream/<key>`. `Location` is relative (RFC 9725 section
 * 4.2): only the client knows the path below which a proxy has the server.
 */
export function httpRoutes({
  handlers,
  resources,
  access,
  redirects,
  crossDomains = EVERYBODY,
}: HttpRoutesOptions): FastifyPluginAsync {
  return async (fastify) => {
    takeMeantTypes(fastify);
    fastify.removeAllContentTypeParsers();
    const types = [SDP_TYPE, FRAGMENT_TYPE];
    fastify.addContentTypeParser(types, { parseAs: 'string' }, (_request, body, done) => done(null, body));
    const arriving = (request: FastifyRequest): PeerRequest => peerRequest(request, redirects.arrival(request));
    const settingsOf = (peer: PeerRequest): ModuleSettings | undefined =>
      handlerOf(handlers, peer)?.settings(peer.hostName, peer.app);
    const crossDomainsOf = (peer: PeerRequest): CrossDomainsConfig => settingsOf(peer)?.crossDomains ?? crossDomains;
    fastify.addHook('onRequest', async (request, reply) => {
      addCorsHeaders(crossDomainsOf(arriving(request)), request, reply);
    });
    fastify.setErrorHandler(async (error: Error & { statusCode?: number }, request, reply) => {
      const status = statusOf(error, arriving(request));
      if (status === 503 || isNotThere(error)) reply.header('retry-after', RETRY_AFTER);
      if (status === 415) reply.header('accept-post', SDP_TYPE).header('accept-patch', FRAGMENT_TYPE);
      if (!(error instanceof KilnError) && status < 500) refuseUnread(arriving(request), error.message);
      reply.code(status).type('text/plain; charset=utf-8').headers(challengeHeaders(error));
      if (status < 500 || error instanceof KilnError) return error.message;
      reply.log.error({ err: error }, 'the WebRTC request failed');
      return 'Internal error';
    });

    /** A missing stream may come, other than a missing application (draft-ietf-wish-whep-03 section 4.2). */
    const statusOf = (error: Error & { statusCode?: number }, peer: PeerRequest): number => {
      const isWaitedFor = isNotThere(error) && directionAt(handlers, peer) === 'outgoing';
      if (isWaitedFor && settingsOf(peer) !== undefined) return 409;
      return error instanceof KilnError ? error.status : (error.statusCode ?? 500);
    };

    /** Logs a request whose body is too large or of an unknown type. */
    const refuseUnread = (peer: PeerRequest, reason: string): void => {
      const { app, stream, client } = peer;
      const { realAddress: address } = client;
      const direction = directionAt(handlers, peer);
      access.report({ direction, protocol: 'webrtc', address, asked: `${app}/${stream}` }, reason);
    };

    /** Checks an offer before it is parsed. @throws webrtcIngestUnavailable, webrtcPlayUnavailable, unsupportedMediaType */
    const demandOffer = (request: FastifyRequest, peer: PeerRequest): { handler: SignallingHandler; body: string } => {
      const direction = directionAt(handlers, peer);
      try {
        const handler = handlerOf(handlers, peer);
        if (handler === undefined) throw unavailable(direction);
        const body = textOf(request);
        requireType(request.headers['content-type'], body, SDP_TYPE);
        return { handler, body };
      } catch (error) {
        access.report(accessOf(peer, direction), error);
        throw error;
      }
    };

    /** Redirect target for a viewer's offer. */
    const betterUrl = (request: FastifyRequest, arrival: Arrival, peer: PeerRequest): string | undefined => {
      if (directionAt(handlers, peer) === 'incoming' || !followsRedirects(crossDomainsOf(peer))) return undefined;
      const { app, stream } = peer;
      return redirects.better(arrival, { module: 'webrtc', app, stream, path: request.url });
    };

    const post = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const arrival = redirects.arrival(request);
      const peer = peerRequest(request, arrival);
      const { handler, body } = demandOffer(request, peer);
      const better = betterUrl(request, arrival, peer);
      if (better !== undefined) {
        reply.code(307).header('location', better);
        return '';
      }
      const signal = goneSignal(reply.raw);
      const key = resources.newKey();
      const endpoint = endpointOf(peer.app, peer.stream);
      const answered = await handler.answer({ ...peer, signal }, body, () => resources.delete(key));
      const { session, sdp, remoteUfrag } = answered;
      if (signal.aborted) session.close('the peer left before it was answered');
      if (session.closed) throw kilnError('mediaUnavailable');
      const etag = resources.add(key, session, endpoint, remoteUfrag);
      const links = linkHeaders(iceServersFor(handler.bind, { hostName: request.hostname, query: peer.query }));
      reply
        .code(201)
        .type(SDP_TYPE)
        .headers({
          location: `${sessionUnder(request.url, peer.stream)}${key}?direction=${directionAt(handlers, peer) === 'incoming' ? 'whip' : 'whep'}`,
          etag,
          'accept-patch': FRAGMENT_TYPE,
        });
      if (links.length > 0) reply.header('link', links);
      return sdp;
    };

    /** Answers a client that looks for an endpoint, which has no representation (RFC 9725 section 4.1), and learns no names. */
    const discover = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const peer = arriving(request);
      if (handlerOf(handlers, peer) === undefined) throw unavailable(directionAt(handlers, peer));
      reply.type(SDP_TYPE).headers({ 'accept-post': SDP_TYPE, 'accept-patch': FRAGMENT_TYPE, allow: ENDPOINT_METHODS });
      return '';
    };

    const change = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const { app, stream, name } = request.params as Path;
      const { 'if-match': ifMatch, 'content-type': type } = request.headers;
      const method = request.method === 'HEAD' ? 'GET' : (request.method as 'GET' | 'PATCH' | 'DELETE');
      const place = name === undefined ? { key: stream } : { key: name, endpoint: endpointOf(app, stream) };
      const asked = { method, ...place, ifMatch, type, body: textOf(request) };
      const { status, headers, body } = await resources.request(asked);
      reply.code(status).headers(headers);
      return body;
    };

    const options =
      (headers: Readonly<Record<string, string>>) =>
      async (_request: FastifyRequest, reply: FastifyReply): Promise<string> => {
        reply.headers(headers);
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
      fastify.options(
        url,
        options({ 'accept-post': SDP_TYPE, 'accept-patch': FRAGMENT_TYPE, allow: ENDPOINT_METHODS }),
      );
      fastify.put(url, refuse(url === endpoint ? ENDPOINT_METHODS : RESOURCE_METHODS));
    }
    fastify.patch(named, { bodyLimit: MAX_SDP }, change);
    fastify.delete(named, change);
    const refuseChange = refuse(ENDPOINT_METHODS);
    fastify.route({
      method: ['PATCH', 'DELETE'],
      url: endpoint,
      bodyLimit: MAX_SDP,
      // some clients (OBS Studio) resolve a relative Location against the host, not the endpoint's path
      handler: (request, reply) =>
        isKey((request.params as Path).stream) ? change(request, reply) : refuseChange(request, reply),
    });
    // pages without a direction share the path
    if (!fastify.hasConstraintStrategy(TARGET)) fastify.addConstraintStrategy(targetConstraint);
    for (const url of [endpoint, named]) fastify.get(url, { constraints: { [TARGET]: 'endpoint' } }, discover);
    const constraints = { [TARGET]: 'session' };
    fastify.options(named, { constraints }, options({ 'accept-patch': FRAGMENT_TYPE, allow: RESOURCE_METHODS }));
    fastify.get(named, { constraints }, change);
    fastify.route({ method: ['POST', 'PUT'], url: named, constraints, handler: refuse(RESOURCE_METHODS) });
  };
}

function isNotThere(error: Error): boolean {
  return error instanceof KilnError && error.code === 'streamNotFound';
}

/** Direction of a request; without `direction` in its URL, outgoing where the port has playback. */
function directionAt({ play }: SignallingHandlers, { query }: PeerRequest): AccessRequest['direction'] {
  return play === undefined && !hasDirection(query) ? 'incoming' : directionOf(query);
}

function handlerOf(handlers: SignallingHandlers, peer: PeerRequest): SignallingHandler | undefined {
  return directionAt(handlers, peer) === 'incoming' ? handlers.publish : handlers.play;
}

function endpointOf(app: string, stream: string): string {
  return `/${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;
}

/** Relative path from an offer's URL to the sessions of its stream (RFC 3986 section 5.2.3). */
function sessionUnder(url: string, stream: string): string {
  const isEndpoint = /^\/[^/?]*\/[^/?]*(?:\?|$)/.test(url);
  return isEndpoint ? `${encodeURIComponent(stream)}/` : '';
}

function textOf({ body }: FastifyRequest): string | undefined {
  return typeof body === 'string' ? body : undefined;
}

function peerRequest(
  { params, host, protocol }: FastifyRequest,
  { search, isRedirected: _, ...asking }: Arrival,
): PeerRequest {
  const { app = '', stream = '', name } = params as Partial<Path>;
  return {
    ...asking,
    origin: `${protocol}://${host}`,
    app,
    stream,
    ...(name === undefined ? {} : { playlist: name }),
    query: new URLSearchParams(search),
  };
}
