import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Version } from '../../version.ts';
import { answers, ok } from '../envelope.ts';

const VersionInfo = Type.Object({ gitVersion: Type.String(), version: Type.String() });

export function versionRoutes({ version, gitVersion }: Version): FastifyPluginAsyncTypebox {
  let known: Static<typeof VersionInfo> | undefined;
  const ask = async () => ok((known = { version, gitVersion: await gitVersion }));
  return async (app) => {
    const schema = { response: answers(VersionInfo), summary: 'Show the version' };
    app.get('/v1/version', { schema }, () => (known === undefined ? ask() : ok(known)));
  };
}
