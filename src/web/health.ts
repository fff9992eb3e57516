import type { FastifyPluginAsync } from 'fastify';
import Type from 'typebox';

export type Readiness =
  /** `degraded`: what does not work for the time being, on no node of the cluster. */
  | { readonly ready: true; readonly degraded?: string }
  /** Why no new publishers and viewers should come here. */
  | { readonly ready: false; readonly reason: string };

const Live = Type.Object({ status: Type.Literal('ok') });
const Ready = Type.Object({
  status: Type.Union([Type.Literal('ready'), Type.Literal('not ready')]),
  reason: Type.Optional(Type.String()),
  degraded: Type.Optional(Type.String()),
});

/**
 * `/livez`: the process answers. `/readyz`: 200 while it takes new publishers and viewers, else 503 with the reason.
 * Both are for load balancers and orchestrators: no authorization, no host name check.
 */
export function healthRoutes(readiness: () => Readiness): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('cache-control', 'no-store');
    });
    app.get('/livez', { schema: { security: [], response: { 200: Live } } }, () => ({ status: 'ok' }));
    app.get('/readyz', { schema: { security: [], response: { '2xx': Ready, 503: Ready } } }, (_request, reply) => {
      const state = readiness();
      if (state.ready) return { status: 'ready', degraded: state.degraded };
      reply.code(503);
      return { status: 'not ready', reason: state.reason };
    });
  };
}
