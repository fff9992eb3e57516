import type { FastifyReply, FastifyRequest } from 'fastify';
import { goneSignal, httpAccess } from '../access/http-request.ts';
import type { Access, ViewerGrant } from '../access/access.ts';
import type { PlayRequest } from '../access/request.ts';
import type { Application } from '../core/application.ts';
import type { Grant } from '../access/grant.ts';
import type { Registry } from '../core/registry.ts';
import { exchangeOf, type Exchange } from '../publishers/hls/answer/exchange.ts';
import type { CrossDomainRules } from '../publishers/hls/http/cors.ts';
import { NOT_CACHED } from '../publishers/hls/http/respond.ts';
import { refuse } from './refuse.ts';

export interface Params {
  readonly app: string;
  readonly stream: string;
}

export type PlaybackRequest<P extends Params = Params> = FastifyRequest<{ Params: P }>;

export interface Viewers {
  readonly registry: Registry;
  readonly access: Access;
  readonly crossDomains: CrossDomainRules;
}

/** Runs a handler whose errors are answered. The framework sends nothing from then on. */
export function handled<R extends FastifyRequest>(
  serve: (request: R, exchange: Exchange) => Promise<void>,
): (request: R, reply: FastifyReply) => void {
  return (request, reply) => {
    const exchange = exchangeOf(request, reply);
    exchange.headers['cache-control'] = NOT_CACHED;
    serve(request, exchange).catch((error: Error) => refuse(error, exchange));
  };
}

/** Query of the URL of a request. */
export function queryOf({ url }: FastifyRequest): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}

/** Finds the application that a request is for, unless its recordings are not played. */
export function applicationOf({ registry }: Viewers, request: PlaybackRequest): Application | undefined {
  const application = registry.resolve(request.hostname)?.applications.get(request.params.app);
  return application?.config.publishers.playback === undefined ? undefined : application;
}

/**
 * Admits a viewer of recordings.
 * @param look at the stream that it may play: a guard may have replaced the requested one
 * @throws what Access.admitViewer and `look` throw
 */
export function admit<Found>(
  { access, crossDomains }: Viewers,
  viewer: PlayRequest,
  exchange: Exchange,
  look: (application: Application, stream: string, grant: Grant) => Promise<Found>,
): Promise<ViewerGrant<Found>> {
  return access.admitViewer(viewer, (application, stream, _playlist, grant) => {
    crossDomains.apply(application, exchange);
    return look(application, stream, grant);
  });
}

/** The viewer of a request. */
export function viewerOf(
  request: PlaybackRequest,
  { response }: Exchange,
): PlayRequest & { readonly signal: AbortSignal } {
  const { app, stream } = request.params;
  return {
    direction: 'outgoing',
    protocol: 'playback',
    hostName: request.hostname,
    app,
    stream,
    query: queryOf(request),
    ...httpAccess(request.raw, request),
    signal: goneSignal(response),
  };
}
