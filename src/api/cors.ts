import type { FastifyReply, FastifyRequest } from 'fastify';
import { allowOrigin } from '../access/cross-domains.ts';
import type { CrossDomainsConfig } from '../config/model.ts';

const METHODS = 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE';
const ASKED_HEADERS = 'access-control-request-headers';

/** @returns sets the CORS headers of an answer (docs/compatibility.md#authentication-and-cors) */
export function corsHeaders(
  crossDomains: CrossDomainsConfig | undefined,
): (request: FastifyRequest, reply: FastifyReply) => void {
  const allowed = allowOrigin(crossDomains);
  return ({ headers, method }, reply) => {
    const origin = allowed(headers.origin);
    const isAllowed = origin !== undefined;
    reply.header('vary', isAllowed && method === 'OPTIONS' ? 'Origin, Access-Control-Request-Headers' : 'Origin');
    if (isAllowed) {
      reply.header('access-control-allow-origin', origin);
      reply.header('access-control-allow-credentials', 'true');
    }
    if (isAllowed || crossDomains === undefined) reply.header('access-control-allow-methods', METHODS);
    if (!isAllowed || crossDomains === undefined) return;
    const wanted = headers[ASKED_HEADERS];
    if (wanted !== undefined) reply.header('access-control-allow-headers', wanted);
    for (const { key, value } of crossDomains.header) reply.header(key, value);
  };
}
