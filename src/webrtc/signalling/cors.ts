import type { FastifyReply, FastifyRequest } from 'fastify';
import { allowOrigin } from '../../access/cross-domains.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';

/** Includes reads: other publishers answer them under the same paths, but preflights come here. */
const METHODS = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST';
const MAX_AGE = '86400';

/** Adds the CORS headers that allow pages of other origins to use the answer. */
export function addCorsHeaders(crossDomains: CrossDomainsConfig, request: FastifyRequest, reply: FastifyReply): void {
  const allowed = allowOrigin(crossDomains)(request.headers.origin);
  if (allowed === undefined) return;
  reply.headers({
    'access-control-allow-origin': allowed,
    'access-control-expose-headers': 'Location, Link, ETag, Accept-Patch, Retry-After, WWW-Authenticate',
  });
  if (allowed !== '*') reply.header('vary', 'Origin');
  if (request.method === 'OPTIONS') {
    reply.headers({
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': request.headers['access-control-request-headers'] ?? 'Content-Type, If-Match',
      'access-control-max-age': MAX_AGE,
      'access-control-allow-private-network': 'true',
    });
  }
  for (const { key, value } of crossDomains.header) reply.header(key, value);
}
