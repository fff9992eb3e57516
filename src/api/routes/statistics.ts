import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { TSchema } from 'typebox';
import type { Counters } from '../../core/counters.ts';
import type { Registry } from '../../core/registry.ts';
import { StatisticsV1, statisticsV1 } from '../../stats/v1.ts';
import { StatisticsV2, statisticsV2 } from '../../stats/v2.ts';
import { answers, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath, VhostPath } from '../lookup.ts';

/** Counters of the server (v1 alone), virtual hosts, applications and input streams. */
export function statisticsRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    const response = answers(StatisticsV1);
    const schema = { response, summary: 'Statistics of the server' };
    app.get('/v1/stats/current', { schema }, () => ok(statisticsV1(registry.counters)));
    await app.register(levels(registry, '/v1/stats/current', StatisticsV1, statisticsV1));
    await app.register(levels(registry, '/v2/stats/current', StatisticsV2, statisticsV2));
  };
}

function levels(
  registry: Registry,
  base: string,
  shape: TSchema,
  show: (counters: Counters) => object,
): FastifyPluginAsyncTypebox {
  const response = answers(shape);
  return async (app) => {
    const vhost = { params: VhostPath, response, summary: 'Statistics of a virtual host' };
    app.get(`${base}/vhosts/:vhost`, { schema: vhost }, ({ params }) =>
      ok(show(registry.vhost(params.vhost).counters)),
    );

    const application = { params: ApplicationPath, response, summary: 'Statistics of an application' };
    app.get(`${base}/vhosts/:vhost/apps/:app`, { schema: application }, ({ params }) =>
      ok(show(findApplication(registry, params).counters)),
    );

    const stream = { params: StreamPath, response, summary: 'Statistics of a stream' };
    app.get(`${base}/vhosts/:vhost/apps/:app/streams/:stream`, { schema: stream }, ({ params }) =>
      ok(show(findStream(registry, params).counters)),
    );
  };
}
