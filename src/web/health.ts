import type { FastifyPluginAsync } from 'fastify';
import Type, { type Static } from 'typebox';
import { goBySchemas } from '../lib/by-schema.ts';

export type Readiness =
  /** `degraded`: what does not work for the time being, on no node of the cluster; `full`: which limits are reached. */
  | { readonly ready: true; readonly degraded?: string; readonly full?: string | undefined }
  /** Why no new publishers and viewers should come here. */
  | { readonly ready: false; readonly reason: string };

const Live = Type.Object({ status: Type.Literal('ok') });
/** `new`: 1 where the answer decides who gets newcomers. */
const Asked = Type.Object({ new: Type.Optional(Type.String()) });
const Ready = Type.Object({
  status: Type.Union([Type.Literal('ready'), Type.Literal('not ready')]),
  reason: Type.Optional(Type.String()),
  degraded: Type.Optional(Type.String()),
});

/**
 * `/livez`: the process answers. `/readyz`: 200 while it takes new publishers and viewers, else 503 with the reason.
 * `/readyz?new=1`: 503 also while it is full, for those who can send newcomers to another node.
 * Both are for load balancers and orchestrators: no authorization, no host name check.
 */
export function healthRoutes(readiness: () => Readiness): FastifyPluginAsync {
  return async (app) => {
    goBySchemas(app);
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('cache-control', 'no-store');
    });
    app.get('/livez', { schema: { security: [], response: { 200: Live } } }, () => ({ status: 'ok' }));
    app.get<{ Querystring: Static<typeof Asked> }>(
      '/readyz',
      { schema: { security: [], querystring: Asked, response: { '2xx': Ready, 503: Ready } } },
      ({ query }, reply) => {
        const state = readiness();
        const isFull = state.ready && state.full !== undefined && query.new === '1';
        if (state.ready && !isFull) return { status: 'ready', degraded: state.degraded };
        reply.code(503);
        return { status: 'not ready', reason: state.ready ? `full: ${state.full}` : state.reason };
      },
    );
  };
}
