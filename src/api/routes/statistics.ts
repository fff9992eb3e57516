import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Registry } from '../../core/registry.ts';
import { StatisticsV1, statisticsV1 } from '../../stats/v1.ts';
import { answers, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath, VhostPath } from '../lookup.ts';

const BASE = '/v1/stats/current';
const VHOST = `${BASE}/vhosts/:vhost`;
const APPLICATION = `${VHOST}/apps/:app`;

export function statisticsRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  const response = answers(StatisticsV1);
  return async (app) => {
    app.get(BASE, { schema: { response } }, () => ok(statisticsV1(registry.counters)));

    app.get(VHOST, { schema: { params: VhostPath, response } }, ({ params }) =>
      ok(statisticsV1(registry.vhost(params.vhost).counters)),
    );

    app.get(APPLICATION, { schema: { params: ApplicationPath, response } }, ({ params }) =>
      ok(statisticsV1(findApplication(registry, params).counters)),
    );

    app.get(`${APPLICATION}/streams/:stream`, { schema: { params: StreamPath, response } }, ({ params }) =>
      ok(statisticsV1(findStream(registry, params).counters)),
    );
  };
}
