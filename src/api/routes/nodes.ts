import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import { NoNodeError, UnavailableError, type Cluster, type NodeRow } from '#cluster';
import { isSameConfig } from '../../config/config-hash.ts';
import { kilnError } from '../../errors.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';

const NodeInfo = Type.Object({
  id: Type.String(),
  incarnation: Type.String({ description: 'Another one at each start' }),
  state: Type.Union([Type.Literal('ready'), Type.Literal('draining'), Type.Literal('silent'), Type.Literal('lost')]),
  address: Type.Optional(Type.String({ description: 'Where other nodes reach it' })),
  addresses: Type.Record(Type.String(), Type.Array(Type.String()), {
    description: 'Where clients reach it, by module',
  }),
  publicUrl: Type.Optional(Type.String({ description: 'Where full nodes send viewers, while this one has room' })),
  version: Type.String(),
  uptime: Type.Integer({ description: 'Milliseconds since it joined' }),
  lastHeard: Type.Integer({ description: 'Milliseconds since its last sign of life' }),
  load: Type.Number({ minimum: 0, maximum: 1, description: '0 idle to 1 busy' }),
  full: Type.Boolean({
    description: 'It has reached a limit of Cluster/Node/Limits: what is placed goes to others that have room',
  }),
  streams: Type.Integer(),
  sessions: Type.Integer(),
  configDiffers: Type.Boolean({ description: 'It was started with another Server.xml than the node that answers' }),
});
export type NodeInfo = Static<typeof NodeInfo>;

const NodePath = Type.Object({ node: Type.String() });

/** Nodes of the cluster: lists and drains them. */
export function nodeRoutes(cluster: Cluster): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { response: answers(Type.Array(NodeInfo)), summary: 'List the nodes of the cluster' };
    app.get('/v1/cluster/nodes', { schema: list }, () => {
      const rows = cluster.nodes();
      const own = rows.find(({ id }) => id === cluster.self.id)?.info ?? {};
      return ok(rows.map((row) => view(row, own)));
    });

    const change = (summary: string) => ({ params: NodePath, response: noPayload, summary });
    const draining = change('Drain a node: it accepts no new streams');
    app.post('/v1/cluster/nodes/:node(^[^:]+$)::drain', { schema: draining }, async ({ params }) => {
      await asked(params.node, cluster.drain(params.node));
      return done;
    });
    const back = change('Undrain a node: it accepts new streams again');
    app.post('/v1/cluster/nodes/:node(^[^:]+$)::undrain', { schema: back }, async ({ params }) => {
      await asked(params.node, cluster.undrain(params.node));
      return done;
    });
  };
}

async function asked(node: string, answer: Promise<void>): Promise<void> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof NoNodeError) throw kilnError('nodeNotFound', node);
    if (error instanceof UnavailableError) throw kilnError('clusterUnavailable');
    throw error;
  }
}

/** Shows a node. It may be of another version: fields that it does not report are empty. */
function view(
  { id, incarnation, state, address, uptimeMs, silentMs, load, full, info }: NodeRow,
  own: NodeRow['info'],
) {
  const { version, addresses, publicUrl, streams, sessions, configHash } = info;
  return {
    id,
    incarnation,
    state,
    address,
    load,
    full,
    uptime: Math.round(uptimeMs),
    lastHeard: Math.round(silentMs),
    version: typeof version === 'string' ? version : '',
    addresses: (addresses ?? {}) as Record<string, string[]>,
    publicUrl: typeof publicUrl === 'string' ? publicUrl : undefined,
    streams: Number(streams ?? 0),
    sessions: Number(sessions ?? 0),
    configDiffers: configHash !== undefined && !isSameConfig(info, own),
  };
}
