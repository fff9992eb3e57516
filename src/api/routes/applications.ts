import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { viewApplication } from '../config-view.ts';
import { answers, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, VhostPath } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps';

export function applicationRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(BASE, { schema: { params: VhostPath, response: answers(Type.Array(Type.String())) } }, ({ params }) =>
      ok([...registry.vhost(params.vhost).applications.keys()]),
    );

    app.get(`${BASE}/:app`, { schema: { params: ApplicationPath, response: answers(Type.Unknown()) } }, ({ params }) =>
      ok(viewApplication(findApplication(registry, params))),
    );
  };
}
