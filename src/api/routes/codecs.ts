import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { peerRequest, type OtherNodes, type Reply } from '../../origins/other-nodes.ts';
import { readJson } from '../../origins/json.ts';
import { CodecEntry, type CodecInventory } from '../../transcode/codecs.ts';
import { joinInventories } from '../../transcode/joined-codecs.ts';
import { answers, ok } from '../envelope.ts';
import { markStale } from '../read-your-writes.ts';
import { PEER_API } from '../stream-owner.ts';

const PATH = '/v2/internals/codecs';
const Answer = Type.Object({ response: Type.Array(CodecEntry) });

/** What can encode and decode, on any node. @param others whose entries are among the answer, too */
export function codecRoutes(codecs: CodecInventory, others: OtherNodes | undefined): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      response: answers(Type.Array(CodecEntry)),
      summary: 'What can encode and decode on the machines of all nodes',
    };
    app.get(PATH, { schema }, async ({ log }, reply) => {
      const own = await codecs.read();
      if (others === undefined) return ok(own);
      const replies = await others.ask(peerRequest('GET', `${PEER_API}${PATH}`));
      const inventories = new Map([[others.self.id, own]]);
      for (const told of replies) {
        const entries = read(told);
        if (entries !== undefined) {
          inventories.set(told.node.id, entries);
          continue;
        }
        log.warn({ node: told.node.id }, 'a node did not answer which codecs it has');
        markStale(reply);
      }
      return ok(joinInventories(inventories));
    });
  };
}

/** undefined for a node that does not answer, or does as another version. */
function read({ response }: Reply): CodecEntry[] | undefined {
  if (response?.status !== 200) return undefined;
  return readJson(Answer, response.body)?.response;
}
