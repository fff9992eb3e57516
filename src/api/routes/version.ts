import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Version } from '../../version.ts';
import { answers, ok } from '../envelope.ts';

const VersionInfo = Type.Object({ gitVersion: Type.String(), version: Type.String() });

export function versionRoutes(version: Version): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = { response: answers(VersionInfo), summary: 'Show the version' };
    app.get('/v1/version', { schema }, async () => ok({ ...version, gitVersion: await version.gitVersion }));
  };
}
