import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { completeEntry, NodeQueueEntry, queueEntry, QueueEntry, type Queues } from '../../stats/queues.ts';
import type { AllNodes } from '../forwarding/all-nodes.ts';
import { answers, ok } from '../envelope.ts';

const INTERNALS = '/v1/stats/current/internals';
const QUEUES = `${INTERNALS}/queues`;
/** Path of the same list in v2. */
const QUEUES_V2 = '/v2/internals/queues';

/** Queues between streams and their readers, of all nodes. @param node id of this node */
export function queueRoutes(queues: Queues, nodes: AllNodes, node: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      response: answers(Type.Array(Type.String())),
      summary: 'List the paths of statistics of the inside of the server',
    };
    app.get(INTERNALS, { schema: list }, () => ok([QUEUES]));

    const schema = {
      response: answers(Type.Array(QueueEntry)),
      summary:
        'List the queues of all nodes between streams and their encoders, pushes, recordings, relays and viewers',
    };
    for (const path of [QUEUES, QUEUES_V2]) {
      app.get(path, { schema }, async (request, reply) => {
        const own = Array.from(queues.all(), (state) => queueEntry(state, node));
        const all = await nodes.ask(request, reply, NodeQueueEntry, own);
        return ok([...all.values()].flat().map(completeEntry));
      });
    }
  };
}
