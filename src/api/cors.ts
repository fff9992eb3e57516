import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance } from 'fastify';
import { allowOrigin } from '../access/cross-domains.ts';
import type { CrossDomainsConfig } from '../config/model.ts';

const METHODS = 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE';

/**
 * Sets the CORS headers of every answer and answers every OPTIONS with 204, before any check of credentials
 * (docs/compatibility.md#authentication-and-cors).
 */
export async function answerCors(app: FastifyInstance, crossDomains: CrossDomainsConfig | undefined): Promise<void> {
  const allowed = allowOrigin(crossDomains);
  await app.register(cors, {
    delegator: (request, done) => {
      const origin = allowed(request.headers.origin) ?? false;
      done(null, { origin, credentials: true, methods: METHODS, strictPreflight: false, preflightContinue: true });
    },
  } satisfies FastifyCorsOptions);

  app.addHook('onRequest', (request, reply, done) => {
    if (crossDomains === undefined) {
      reply.header('access-control-allow-methods', METHODS);
    } else if (reply.hasHeader('access-control-allow-origin')) {
      reply.header('access-control-allow-methods', METHODS);
      const wanted = request.headers['access-control-request-headers'];
      if (wanted !== undefined) reply.header('access-control-allow-headers', wanted);
      for (const { key, value } of crossDomains.header) reply.header(key, value);
    }
    if (request.method !== 'OPTIONS') return done();
    reply.code(204).send();
  });
}
