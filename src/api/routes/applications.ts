import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { BatchBody, batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { viewApplication, viewConfig } from '../config-view.ts';
import { answers, done, noPayload, objectOf, ObjectBody, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, VhostPath } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps';

export function applicationRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(BASE, { schema: { params: VhostPath, response: answers(Type.Array(Type.String())) } }, ({ params }) =>
      ok([...registry.vhost(params.vhost).applications.keys()]),
    );

    const batch = { params: VhostPath, body: BatchBody, response: batchAnswers };
    app.post(BASE, { schema: batch }, async ({ params, body }, reply) => {
      const outcomes = await dynamic.createApplications(params.vhost, () => itemsOf(body));
      return sendBatch(reply, outcomes, ({ config }) => viewConfig(config));
    });

    app.get(`${BASE}/:app`, { schema: { params: ApplicationPath, response: answers(Type.Unknown()) } }, ({ params }) =>
      ok(viewApplication(findApplication(registry, params))),
    );

    const change = { params: ApplicationPath, body: ObjectBody, response: answers(Type.Unknown()) };
    app.patch(`${BASE}/:app`, { schema: change }, async ({ params, body }) =>
      ok(viewApplication(await dynamic.patchApplication(params.vhost, params.app, () => objectOf(body)))),
    );

    app.delete(`${BASE}/:app`, { schema: { params: ApplicationPath, response: noPayload } }, async ({ params }) => {
      await dynamic.deleteApplication(params.vhost, params.app);
      return done;
    });
  };
}
