import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import Value from 'typebox/value';
import { peerRequest, type OtherNodes, type Reply } from '../../origins/other-nodes.ts';
import { CodecEntry, type CodecInventory } from '../../transcode/codecs.ts';
import { joinInventories } from '../../transcode/joined-codecs.ts';
import { answers, ok } from '../envelope.ts';
import { PEER_API } from '../stream-owner.ts';

const PATH = '/v2/internals/codecs';
const Answer = Type.Object({ response: Type.Array(CodecEntry) });

/** @param others whose entries are among the answer, too */
export function codecRoutes(codecs: CodecInventory, others: OtherNodes | undefined): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = { response: answers(Type.Array(CodecEntry)), summary: 'What can encode and decode on the machines of all nodes' };
    app.get(PATH, { schema }, async ({ log }) => {
      const own = await codecs.read();
      if (others === undefined) return ok(own);
      const replies = await others.ask(peerRequest('GET', `${PEER_API}${PATH}`));
      const inventories = new Map([[others.self.id, own]]);
      for (const reply of replies) {
        const entries = read(reply);
        if (entries === undefined) log.warn({ node: reply.node.id }, 'a node did not tell its codecs');
        else inventories.set(reply.node.id, entries);
      }
      return ok(joinInventories(inventories));
    });
  };
}

/** undefined for a node that does not answer, or does as another version. */
function read({ response }: Reply): CodecEntry[] | undefined {
  if (response?.status !== 200) return undefined;
  const answer = JSON.parse(response.body.toString()) as unknown;
  return Value.Check(Answer, answer) ? answer.response : undefined;
}
