import type { FastifyInstance, FastifyReply } from 'fastify';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';

/** Header of an answer that may lack changes of other nodes. */
const STALE = 'x-kiln-stale';

export function markStale(reply: FastifyReply): void {
  reply.header(STALE, 'true');
}

export function isStale(headers: { readonly [name: string]: unknown }): boolean {
  return headers[STALE] !== undefined;
}

/**
 * Makes every call see what was answered before it on any node: configuration and owners of streams. An answer that may lack
 * something is marked as stale.
 * @param directory undefined on a node that runs alone
 */
export function readYourWrites(
  app: FastifyInstance,
  dynamic: Pick<DynamicConfig, 'sync' | 'stale'>,
  directory: Pick<StreamDirectory, 'catchUp'> | undefined,
): void {
  app.addHook('preHandler', (request, reply, done) => {
    const isCurrent = directory === undefined && dynamic.sync() === undefined;
    if (isCurrent || request.routeOptions.config.isMeasurement === true) return done();
    return catchUp(reply);
  });

  async function catchUp(reply: FastifyReply): Promise<void> {
    // together, so that the store is asked once
    await Promise.all([dynamic.sync(), directory?.catchUp()]);
    if (dynamic.stale) markStale(reply);
  }
}
