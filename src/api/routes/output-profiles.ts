import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { BatchBody, batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { viewProfile } from '../config-view.ts';
import { answers, done, noPayload, objectOf, ObjectBody, ok } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/outputProfiles';
const ProfilePath = Type.Object({ vhost: Type.String(), app: Type.String(), profile: Type.String() });

export function outputProfileRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(BASE, { schema: { params: ApplicationPath, response: answers(Type.Array(Type.String())) } }, ({ params }) =>
      ok(findApplication(registry, params).config.outputProfiles.outputProfile.map(({ name }) => name)),
    );

    const batch = { params: ApplicationPath, body: BatchBody, response: batchAnswers };
    app.post(BASE, { schema: batch }, async ({ params, body }, reply) =>
      sendBatch(reply, await dynamic.createProfiles(params.vhost, params.app, () => itemsOf(body)), viewProfile),
    );

    const schema = { params: ProfilePath, response: answers(Type.Unknown()) };
    app.get(`${BASE}/:profile`, { schema }, ({ params }) => {
      const profiles = findApplication(registry, params).config.outputProfiles.outputProfile;
      const profile = profiles.find(({ name }) => name === params.profile);
      if (profile === undefined) {
        throw kilnError('profileNotFound', `${params.vhost}/${params.app}/${params.profile}`);
      }
      return ok(viewProfile(profile));
    });

    app.patch(`${BASE}/:profile`, { schema: { ...schema, body: ObjectBody } }, async ({ params, body }) =>
      ok(viewProfile(await dynamic.replaceProfile(params.vhost, params.app, params.profile, () => objectOf(body)))),
    );

    app.delete(`${BASE}/:profile`, { schema: { params: ProfilePath, response: noPayload } }, async ({ params }) => {
      await dynamic.deleteProfile(params.vhost, params.app, params.profile);
      return done;
    });
  };
}
