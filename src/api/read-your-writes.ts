import type { FastifyInstance, FastifyReply } from 'fastify';
import type { DynamicConfig } from '../management/dynamic-config.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';

/** On an answer that may lack what others know by now. */
const STALE = 'x-kiln-stale';

/** Says so of an answer. */
export function markStale(reply: FastifyReply): void {
  reply.header(STALE, 'true');
}

/** Whether an answer with these headers says so. */
export function isStale(headers: { readonly [name: string]: unknown }): boolean {
  return headers[STALE] !== undefined;
}

/**
 * Every call sees what was answered before it on any node, of the configuration and of who has which stream; where that
 * cannot be known, the answer says so.
 */
export function readYourWrites(
  app: FastifyInstance,
  dynamic: Pick<DynamicConfig, 'sync' | 'stale'>,
  directory: Pick<StreamDirectory, 'catchUp'>,
): void {
  app.addHook('preHandler', async (request, reply) => {
    if (request.routeOptions.config.isMeasurement === true) return;
    // both at once: the store is asked once
    await Promise.all([dynamic.sync(), directory.catchUp()]);
    if (dynamic.stale) markStale(reply);
  });
}
