import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { DynamicConfig } from '../../management/dynamic-config.ts';
import { noted } from '../change-log.ts';
import { batchAnswers, itemsOf, sendBatch } from '../batch.ts';
import { shown } from '../config-schema.ts';
import { viewProfile } from '../config-view.ts';
import { answers, done, noPayload, objectOf, ok } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/outputProfiles';
const ProfilePath = Type.Object({ vhost: Type.String(), app: Type.String(), profile: Type.String() });

/** Output profiles of an application: each change restarts it. */
export function outputProfileRoutes(registry: Registry, dynamic: DynamicConfig): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      params: ApplicationPath,
      response: answers(Type.Array(Type.String())),
      summary: 'List the output profiles of an application',
    };
    app.get(BASE, { schema: list }, ({ params }) =>
      ok(findApplication(registry, params).config.outputProfiles.outputProfile.map(({ name }) => name)),
    );

    const batch = {
      params: ApplicationPath,
      body: shown('OutputProfile[]'),
      response: batchAnswers(shown('OutputProfile')),
      summary: 'Create output profiles, which restarts the application',
    };
    app.post(BASE, { schema: batch }, async ({ params, body }, reply) =>
      sendBatch(reply, await dynamic.createProfiles(params.vhost, params.app, () => itemsOf(body)), viewProfile),
    );

    const payload = { params: ProfilePath, response: answers(shown('OutputProfile')) };
    app.get(`${BASE}/:profile`, { schema: { ...payload, summary: 'Show an output profile' } }, ({ params }) => {
      const profiles = findApplication(registry, params).config.outputProfiles.outputProfile;
      const profile = profiles.find(({ name }) => name === params.profile);
      if (profile === undefined) {
        throw kilnError('profileNotFound', `${params.vhost}/${params.app}/${params.profile}`);
      }
      return ok(viewProfile(profile));
    });

    const change = {
      ...payload,
      body: shown('OutputProfileChange'),
      summary: 'Replace an output profile, which restarts the application',
    };
    app.patch(`${BASE}/:profile`, { schema: change }, async (request) => {
      const { params, body } = request;
      const replaced = await dynamic.replaceProfile(params.vhost, params.app, params.profile, () => objectOf(body));
      return ok(viewProfile(noted(request, replaced)));
    });

    const removal = {
      params: ProfilePath,
      response: noPayload,
      summary: 'Delete an output profile, which restarts the application',
    };
    app.delete(`${BASE}/:profile`, { schema: removal }, async ({ params }) => {
      await dynamic.deleteProfile(params.vhost, params.app, params.profile);
      return done;
    });
  };
}
