import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { SessionStatistics, sessionStatistics } from '../../stats/session.ts';
import { answers, done, noPayload, noSession, ok } from '../envelope.ts';
import { findSession, findStream, SessionPath, StreamPath } from '../lookup.ts';

const STREAM = 'vhosts/:vhost/apps/:app/streams/:stream';

/** Viewers of an input stream, on whatever output and by whatever publisher. */
export function sessionRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { params: StreamPath, response: answers(Type.Array(Type.String())) };
    app.get(`/v1/${STREAM}/sessions`, { schema: { ...list, summary: 'List the sessions of a stream' } }, ({ params }) =>
      ok(Array.from(findStream(registry, params).sessions(), ({ id }) => id)),
    );

    const kick = { params: SessionPath, response: { ...noPayload, ...noSession } };
    const session = `/v1/${STREAM}/sessions/:session`;
    app.delete(session, { schema: { ...kick, summary: 'Disconnect a session' } }, ({ params }) => {
      findSession(registry, params).kick();
      return done;
    });

    const read = { params: SessionPath, response: { ...answers(SessionStatistics), ...noSession } };
    const statistics = `/v1/stats/current/${STREAM}/sessions/:session`;
    app.get(statistics, { schema: { ...read, summary: 'Statistics of a session' } }, ({ params }) =>
      ok(sessionStatistics(findSession(registry, params))),
    );
  };
}
