import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { CodecEntry, type CodecInventory } from '../../transcode/codecs.ts';
import { answers, ok } from '../envelope.ts';

export function codecRoutes(codecs: CodecInventory): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = { response: answers(Type.Array(CodecEntry)), summary: 'What can encode and decode on this machine' };
    app.get('/v2/internals/codecs', { schema }, async () => ok(await codecs.read()));
  };
}
