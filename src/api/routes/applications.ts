import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { noted } from '../change-log.ts';
import { batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { shown } from '../config-schema.ts';
import { viewApplication, viewConfig } from '../config-view.ts';
import { answers, done, noPayload, objectOf, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, VhostPath } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps';

/** Applications of a virtual host: shows them, and changes those that the API created. */
export function applicationRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      params: VhostPath,
      response: answers(Type.Array(Type.String())),
      summary: 'List the applications',
    };
    app.get(BASE, { schema: list }, ({ params }) => ok([...registry.vhost(params.vhost).applications.keys()]));

    const batch = {
      params: VhostPath,
      body: shown('Application[]'),
      response: batchAnswers(shown('Application')),
      summary: 'Create applications',
    };
    app.post(BASE, { schema: batch }, async ({ params, body }, reply) => {
      const outcomes = await dynamic.createApplications(params.vhost, () => itemsOf(body));
      return sendBatch(reply, outcomes, ({ config }) => viewConfig(config));
    });

    const payload = { params: ApplicationPath, response: answers(shown('Application')) };
    app.get(`${BASE}/:app`, { schema: { ...payload, summary: 'Show an application' } }, ({ params }) =>
      ok(viewApplication(findApplication(registry, params))),
    );

    const change = {
      ...payload,
      body: shown('ApplicationChange'),
      summary: 'Change an application, which restarts it',
    };
    app.patch(`${BASE}/:app`, { schema: change }, async (request) => {
      const { params, body } = request;
      const patched = await dynamic.patchApplication(params.vhost, params.app, () => objectOf(body));
      return ok(viewApplication(noted(request, patched)));
    });

    const removal = { params: ApplicationPath, response: noPayload, summary: 'Delete an application' };
    app.delete(`${BASE}/:app`, { schema: removal }, async ({ params }) => {
      await dynamic.deleteApplication(params.vhost, params.app);
      return done;
    });
  };
}
