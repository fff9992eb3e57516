import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { shown } from '../config-schema.ts';
import { viewVhost } from '../config-view.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';

/** Virtual hosts: shows them, and changes those that the API created. */
export function vhostRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { response: answers(Type.Array(Type.String())), summary: 'List the virtual hosts' };
    app.get('/v1/vhosts', { schema: list }, () => ok([...registry.vhosts.keys()]));

    const creation = {
      body: shown('VirtualHost[]'),
      response: batchAnswers(shown('VirtualHost')),
      summary: 'Create virtual hosts',
    };
    app.post('/v1/vhosts', { schema: creation }, async ({ body }, reply) =>
      sendBatch(reply, await dynamic.createVhosts(itemsOf(body)), viewVhost),
    );

    const read = { params: VhostPath, response: answers(shown('VirtualHost')), summary: 'Show a virtual host' };
    app.get('/v1/vhosts/:vhost', { schema: read }, ({ params }) => ok(viewVhost(registry.vhost(params.vhost))));

    const removal = { params: VhostPath, response: noPayload, summary: 'Delete a virtual host and all below it' };
    app.delete('/v1/vhosts/:vhost', { schema: removal }, async ({ params }) => {
      await dynamic.deleteVhost(params.vhost);
      return done;
    });
  };
}
