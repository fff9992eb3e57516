import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import type { Channels } from '../../channels/channels.ts';
import { PullError } from '../../providers/pull/error.ts';
import type { PulledStreams } from '../../providers/pull/pulled-streams.ts';
import { shown } from '../config-schema.ts';
import { answers, created, done, ErrorBody, noPayload, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath } from '../lookup.ts';
import { orderOf, readPullRequest } from '../requests/pull-request.ts';
import { streamInfo } from '../../stats/stream-info.ts';
import { StreamInfo } from '../../stats/stream-schema.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/streams';

export interface StreamRoutesOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly pulls: PulledStreams;
  readonly channels: Channels;
  /** As in `streamInfo`. */
  readonly hidesClients: boolean;
}

/** Input streams of an application, on any node: lists, shows, pulls and ends them. */
export function streamRoutes({
  registry,
  directory,
  pulls,
  channels,
  hidesClients,
}: StreamRoutesOptions): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      params: ApplicationPath,
      response: answers(Type.Array(Type.String())),
      summary: 'List the streams',
    };
    app.get(BASE, { schema: list }, ({ params }) => {
      const application = findApplication(registry, params);
      const own = Array.from(application.streams(), ({ name }) => name);
      return ok([...new Set([...own, ...directory.elsewhere(application), ...pulls.persistent(application)])]);
    });

    const body = shown('PullCreation');
    const response = { 201: ErrorBody, '4xx': ErrorBody, '5xx': ErrorBody };
    const creation = { params: ApplicationPath, body, response, summary: 'Pull a stream' };
    app.post(BASE, { schema: creation }, async ({ params, body, protocol, host, url }, reply) => {
      const application = findApplication(registry, params);
      const order = readPullRequest(body);
      if (await channels.has(application, order.name)) throw kilnError('streamExists');
      try {
        await pulls.create(application, order.name, orderOf(order, application.vhost.config));
      } catch (error) {
        if (!(error instanceof PullError)) throw error;
        throw kilnError('pullFailed', `${protocol}://${host}${url}`, error.message);
      }
      reply.code(201);
      return created;
    });

    const read = { params: StreamPath, response: answers(StreamInfo), summary: 'Show a stream' };
    app.get(`${BASE}/:stream`, { schema: read }, ({ params }) =>
      ok(streamInfo(findStream(registry, params), hidesClients)),
    );

    const removal = { params: StreamPath, response: noPayload, summary: 'End a stream and disconnect its source' };
    app.delete(`${BASE}/:stream`, { schema: removal }, async ({ params }) => {
      const application = findApplication(registry, params);
      // also removes a pull that would restore the stream
      if (await pulls.remove(application, params.stream)) return done;
      if (await channels.removeAny(application, params.stream)) return done;
      findStream(registry, params).end('deleted by the management API');
      return done;
    });
  };
}
