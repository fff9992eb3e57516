import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { matchesEtag } from '../lib/etag.ts';

/**
 * Marks answers to reads with `<hex hash>-<size>` and answers 304 to a client that has them already
 * (docs/compatibility.md#rest-answers).
 */
export function addEtags(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const { isMeasurement = false } = request.routeOptions.config;
    if (!isRead || isMeasurement || reply.statusCode !== 200 || typeof payload !== 'string') return done(null, payload);
    const etag = `"${hash('sha1', payload)}-${Buffer.byteLength(payload)}"`;
    reply.header('etag', etag);
    if (!matchesEtag(request.headers['if-none-match'], etag)) return done(null, payload);
    reply.code(304).removeHeader('content-type');
    // of a HEAD the length is told, then the payload is left out
    done(null, request.method === 'HEAD' ? payload : null);
  });
}
