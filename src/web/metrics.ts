import type { FastifyPluginAsync } from 'fastify';
import type { Exposition } from '../stats/metrics/exposition.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer is what this node measures: nothing has to be asked of the store or of other nodes first. */
    readonly isMeasurement?: boolean;
  }
}

/** `/metrics`, what this node measures: in OpenMetrics for who prefers it, else in Prometheus' text format. */
export function metricsRoutes(exposition: Exposition): FastifyPluginAsync {
  return async (app) => {
    app.get('/metrics', { config: { isMeasurement: true } }, async (request, reply) => {
      const { contentType, body } = await exposition.scrape(request.headers.accept);
      return reply
        .header('content-type', contentType)
        .header('cache-control', 'no-store')
        .header('vary', 'accept')
        .send(body);
    });
  };
}
