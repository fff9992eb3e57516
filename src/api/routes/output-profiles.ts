import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { viewProfile } from '../config-view.ts';
import { answers, ok } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/outputProfiles';
const ProfilePath = Type.Object({ vhost: Type.String(), app: Type.String(), profile: Type.String() });

export function outputProfileRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(BASE, { schema: { params: ApplicationPath, response: answers(Type.Array(Type.String())) } }, ({ params }) =>
      ok(findApplication(registry, params).config.outputProfiles.outputProfile.map(({ name }) => name)),
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
  };
}
