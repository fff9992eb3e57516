import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { BatchBody, batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { viewVhost } from '../config-view.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';

export function vhostRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/v1/vhosts', { schema: { response: answers(Type.Array(Type.String())) } }, () =>
      ok([...registry.vhosts.keys()]),
    );

    app.post('/v1/vhosts', { schema: { body: BatchBody, response: batchAnswers } }, async ({ body }, reply) =>
      sendBatch(reply, await dynamic.createVhosts(itemsOf(body)), viewVhost),
    );

    app.get('/v1/vhosts/:vhost', { schema: { params: VhostPath, response: answers(Type.Unknown()) } }, ({ params }) =>
      ok(viewVhost(registry.vhost(params.vhost))),
    );

    app.delete('/v1/vhosts/:vhost', { schema: { params: VhostPath, response: noPayload } }, async ({ params }) => {
      await dynamic.deleteVhost(params.vhost);
      return done;
    });
  };
}
