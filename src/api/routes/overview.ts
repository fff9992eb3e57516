import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { pageOf, SessionSummary, sessionSummaries } from '../../stats/session-summary.ts';
import { joinSummaries, StreamSummary, streamSummaries } from '../../stats/stream-summary.ts';
import type { AllNodes } from '../forwarding/all-nodes.ts';
import { answers, ok } from '../envelope.ts';

const DEFAULT_COUNT = 100;
const UP_TO_500 = '^([1-9][0-9]?|[1-4][0-9]{2}|500)$';

const Count = Type.Optional(Type.String({ pattern: UP_TO_500, description: '1 to 500, default 100' }));

const Event = Type.Object(
  {
    time: Type.String({ description: 'ISO 8601' }),
    node: Type.String(),
    level: Type.String(),
    event: Type.String({ description: 'Stable id (docs/log-events.md)' }),
    msg: Type.String(),
  },
  { additionalProperties: true, description: 'Other fields are those of the line of the log' },
);

/** A main event in the log. */
export type LoggedEvent = Type.Static<typeof Event>;

export interface OverviewOptions {
  readonly registry: Registry;
  readonly nodes: AllNodes;
  readonly node: string;
  /** The newest main events of this node, in the order of time. */
  readonly events: (count: number) => readonly Omit<LoggedEvent, 'node'>[];
}

/** Overview of all nodes for a console: streams, their viewers, and recent events. */
export function overviewRoutes({ registry, nodes, node, events }: OverviewOptions): FastifyPluginAsyncTypebox {
  return async (app) => {
    const streams = {
      querystring: Type.Object({
        vhost: Type.Optional(Type.String({ description: 'Those of this virtual host only' })),
        app: Type.Optional(Type.String({ description: 'Those of applications of this name only' })),
        stream: Type.Optional(Type.String({ description: 'Those of this name only' })),
      }),
      response: answers(Type.Array(StreamSummary)),
      summary: 'List the live streams of all nodes with their formats, bitrates and viewers',
    };
    app.get('/v1/cluster/streams', { schema: streams }, async (request, reply) => {
      const all = await nodes.ask(request, reply, StreamSummary, streamSummaries(registry, node, request.query));
      return ok(joinSummaries([...all.values()].flat()));
    });

    const viewers = {
      querystring: Type.Object({
        vhost: Type.String(),
        app: Type.String(),
        stream: Type.String(),
        after: Type.Optional(Type.String({ description: 'Begin with the first id that is greater' })),
        count: Count,
      }),
      response: answers(Type.Array(SessionSummary)),
      summary:
        'List the sessions of a stream on all nodes with their protocols and bitrates, in the order of their ids',
    };
    app.get('/v1/cluster/sessions', { schema: viewers }, async (request, reply) => {
      const { after = '', count = DEFAULT_COUNT, ...stream } = request.query;
      const page = { ...stream, after, count: Number(count) };
      const all = await nodes.ask(request, reply, SessionSummary, sessionSummaries(registry, node, page));
      return ok(pageOf([...all.values()].flat(), page));
    });

    const newest = {
      querystring: Type.Object({
        count: Count,
      }),
      response: answers(Type.Array(Event)),
      summary: 'List the newest main events of all nodes, the oldest of them first',
    };
    app.get('/v1/cluster/events', { schema: newest }, async (request, reply) => {
      const count = Number(request.query.count ?? DEFAULT_COUNT);
      const own = events(count).map((event) => ({ ...event, node }) as LoggedEvent);
      const all = await nodes.ask(request, reply, Event, own);
      const sorted = [...all.values()].flat().sort((a, b) => (a.time < b.time ? -1 : 1));
      return ok(sorted.slice(-count));
    });
  };
}
