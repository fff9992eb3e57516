import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { SessionStatistics, sessionStatistics } from '../../stats/session.ts';
import { answers, done, noPayload, noSession, ok } from '../envelope.ts';
import { findStream, SessionPath, StreamPath } from '../lookup.ts';
import type { RelayedSessions } from '../relayed-sessions.ts';

const STREAM = 'vhosts/:vhost/apps/:app/streams/:stream';

/** Viewers of an input stream, on whatever output, by whatever publisher, and on whatever node. */
export function sessionRoutes(registry: Registry, relayed: RelayedSessions): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { params: StreamPath, response: answers(Type.Array(Type.String())) };
    app.get(`/v1/${STREAM}/sessions`, { schema: { ...list, summary: 'List the sessions of a stream' } }, async ({ params }) => {
      const own = Array.from(findStream(registry, params).sessions(), ({ id }) => id);
      return ok([...own, ...(await relayed.list(params))]);
    });

    const kick = { params: SessionPath, response: { ...noPayload, ...noSession } };
    const session = `/v1/${STREAM}/sessions/:session`;
    app.delete(session, { schema: { ...kick, summary: 'Disconnect a session' } }, async ({ params }) => {
      const own = findStream(registry, params).session(params.session);
      own?.kick();
      if (own === undefined && !(await relayed.kick(params, params.session))) throw kilnError('sessionNotFound');
      return done;
    });

    const read = { params: SessionPath, response: { ...answers(SessionStatistics), ...noSession } };
    const statistics = `/v1/stats/current/${STREAM}/sessions/:session`;
    app.get(statistics, { schema: { ...read, summary: 'Statistics of a session' } }, async ({ params }) => {
      const own = findStream(registry, params).session(params.session);
      const found = own === undefined ? await relayed.statistics(params, params.session) : sessionStatistics(own);
      if (found === undefined) throw kilnError('sessionNotFound');
      return ok(found);
    });
  };
}
