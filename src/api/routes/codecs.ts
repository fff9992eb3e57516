import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { CodecEntry, type CodecInventory } from '../../transcode/codecs.ts';
import { joinInventories } from '../../transcode/joined-codecs.ts';
import type { AllNodes } from '../forwarding/all-nodes.ts';
import { answers, ok } from '../envelope.ts';

/** Encoders and decoders on the machines of all nodes. */
export function codecRoutes(codecs: CodecInventory, nodes: AllNodes): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      response: answers(Type.Array(CodecEntry)),
      summary: 'What can encode and decode on the machines of all nodes',
    };
    app.get('/v2/internals/codecs', { schema }, async (request, reply) => {
      const inventories = await nodes.ask(request, reply, CodecEntry, await codecs.read());
      return ok(joinInventories(inventories));
    });
  };
}
