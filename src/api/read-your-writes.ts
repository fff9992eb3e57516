import type { FastifyInstance, FastifyReply } from 'fastify';
import type { DynamicConfig } from '../management/dynamic-config.ts';

/** On an answer that may lack what others know by now. */
export const STALE = 'x-kiln-stale';

/** Says so of an answer. */
export function markStale(reply: FastifyReply): void {
  reply.header(STALE, 'true');
}

/** Every call sees what was answered before it on any node; where that cannot be known, the answer says so. */
export function readYourWrites(app: FastifyInstance, dynamic: Pick<DynamicConfig, 'sync' | 'stale'>): void {
  app.addHook('preHandler', async (_request, reply) => {
    await dynamic.sync();
    if (dynamic.stale) markStale(reply);
  });
}
