import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { ConfigStore } from '#cluster';
import type { OtherNodes } from '../../origins/other-nodes.ts';
import { readJson } from '../../origins/json.ts';
import { CodecEntry, type CodecInventory } from '../../transcode/codecs.ts';
import { joinInventories } from '../../transcode/joined-codecs.ts';
import { answers, ok } from '../envelope.ts';
import { API_REQUEST, type ApiAnswer } from '../peer-request.ts';
import { markStale } from '../read-your-writes.ts';

const PATH = '/v2/internals/codecs';
const Answer = Type.Object({ response: Type.Array(CodecEntry) });

/** What can encode and decode, on any node. @param others whose entries are among the answer, too */
export function codecRoutes(
  codecs: CodecInventory,
  config: Pick<ConfigStore, 'position'>,
  others: OtherNodes | undefined,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      response: answers(Type.Array(CodecEntry)),
      summary: 'What can encode and decode on the machines of all nodes',
    };
    app.get(PATH, { schema }, async ({ log, id, host }, reply) => {
      const own = await codecs.read();
      if (others === undefined) return ok(own);
      const replies = await others.ask(API_REQUEST, {
        method: 'GET',
        url: PATH,
        requestId: id,
        host,
        position: config.position,
      });
      const inventories = new Map([[others.self.id, own]]);
      for (const { node, answer, error } of replies) {
        const entries = read(answer);
        if (entries !== undefined) {
          inventories.set(node.id, entries);
          continue;
        }
        log.warn({ node: node.id, reason: error?.message }, 'a node did not answer which codecs it has');
        markStale(reply);
      }
      return ok(joinInventories(inventories));
    });
  };
}

/** undefined for a node that does not answer, or does as another version. */
function read(answer: ApiAnswer | undefined): CodecEntry[] | undefined {
  if (answer?.status !== 200) return undefined;
  return readJson(Answer, Buffer.from(answer.body))?.response;
}
