import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { SessionStatistics } from '../../stats/session.ts';
import { answers, done, noPayload, noSession, ok } from '../envelope.ts';
import { findApplication, findStream, SessionPath, StreamPath } from '../lookup.ts';
import { markStale } from '../forwarding/read-your-writes.ts';
import type { StreamSessions } from '../stream-sessions.ts';

const STREAM = 'vhosts/:vhost/apps/:app/streams/:stream';

/** Viewers of an input stream, on all of its outputs, publishers and nodes, and those of recordings of an output stream. */
export function sessionRoutes(registry: Registry, sessions: StreamSessions): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { params: StreamPath, response: answers(Type.Array(Type.String())) };
    app.get(
      `/v1/${STREAM}/sessions`,
      { schema: { ...list, summary: 'List the sessions of a stream' } },
      async ({ params }, reply) => {
        demandStream(registry, params);
        const { ids, complete } = await sessions.list(params);
        if (ids.length === 0) findStream(registry, params);
        if (!complete) markStale(reply);
        return ok(ids);
      },
    );

    const kick = { params: SessionPath, response: { ...noPayload, ...noSession } };
    const session = `/v1/${STREAM}/sessions/:session`;
    app.delete(session, { schema: { ...kick, summary: 'Disconnect a session' } }, async ({ params }) => {
      demandStream(registry, params);
      if (!(await sessions.kick(params, params.session))) throw kilnError('sessionNotFound');
      return done;
    });

    const read = { params: SessionPath, response: { ...answers(SessionStatistics), ...noSession } };
    const statistics = `/v1/stats/current/${STREAM}/sessions/:session`;
    app.get(statistics, { schema: { ...read, summary: 'Statistics of a session' } }, async ({ params }) => {
      demandStream(registry, params);
      const found = await sessions.statistics(params, params.session);
      if (found === undefined) throw kilnError('sessionNotFound');
      return ok(found);
    });
  };
}

/** Recordings of a stream that is not live may have viewers. @throws vhostNotFound, applicationNotFound, streamNotFound */
function demandStream(registry: Registry, path: Static<typeof StreamPath>): void {
  if (findApplication(registry, path).config.publishers.playback === undefined) findStream(registry, path);
}
