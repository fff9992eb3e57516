import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { viewVhost } from '../config-view.ts';
import { answers, ok } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';

export function vhostRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/v1/vhosts', { schema: { response: answers(Type.Array(Type.String())) } }, () =>
      ok([...registry.vhosts.keys()]),
    );

    app.get('/v1/vhosts/:vhost', { schema: { params: VhostPath, response: answers(Type.Unknown()) } }, ({ params }) =>
      ok(viewVhost(registry.vhost(params.vhost))),
    );
  };
}
