import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { matchesEtag } from '../lib/etag.ts';

/**
 * Adds `<hex hash>-<size>` as entity tag to answers to reads, and answers 304 to a client with the same tag
 * (docs/compatibility.md#rest-answers).
 */
export function addEtags(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead || reply.statusCode !== 200 || typeof payload !== 'string') return done();
    if (request.routeOptions.config.isMeasurement === true) return done();
    const etag = `"${hash('sha1', payload)}-${Buffer.byteLength(payload)}"`;
    reply.header('etag', etag);
    if (!matchesEtag(request.headers['if-none-match'], etag)) return done();
    reply.code(304).removeHeader('content-type');
    // a HEAD needs the payload for its length; then the payload is left out
    done(null, request.method === 'HEAD' ? payload : null);
  });
}
