import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { VhostPath } from '../lookup.ts';

const PATHS = ['/v1/vhosts/:vhost', '/v1/vhosts/:vhost/apps/*'];

/** Rejects every PUT; configuration of Server.xml gives another reason (docs/compatibility.md#rest-answers). */
export function putRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    for (const url of PATHS) {
      app.put(url, { schema: { hide: true, params: VhostPath } }, ({ params }) => {
        if (registry.vhosts.get(params.vhost)?.isStatic) throw kilnError('vhostReadOnly', params.vhost);
        throw kilnError('controllerNotFound');
      });
    }
  };
}
