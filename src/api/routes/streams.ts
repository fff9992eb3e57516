import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { answers, done, noPayload, ObjectBody, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath } from '../lookup.ts';
import { readPullRequest } from '../pull-request.ts';
import { streamInfo } from '../stream-info.ts';
import { StreamInfo } from '../stream-schema.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/streams';

export function streamRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(BASE, { schema: { params: ApplicationPath, response: answers(Type.Array(Type.String())) } }, ({ params }) =>
      ok(Array.from(findApplication(registry, params).streams(), ({ name }) => name)),
    );

    const creation = { params: ApplicationPath, body: ObjectBody, response: noPayload };
    app.post(BASE, { schema: creation }, ({ params, body, log, protocol, host, url }) => {
      const application = findApplication(registry, params);
      const { name, urls } = readPullRequest(body);
      if (application.stream(name) !== undefined) throw kilnError('streamExists');
      log.warn({ stream: name, urls }, 'nothing here pulls streams of that scheme');
      throw kilnError('pullFailed', `${protocol}://${host}${url}`);
    });

    app.get(`${BASE}/:stream`, { schema: { params: StreamPath, response: answers(StreamInfo) } }, ({ params }) =>
      ok(streamInfo(findStream(registry, params))),
    );

    app.delete(`${BASE}/:stream`, { schema: { params: StreamPath, response: noPayload } }, ({ params }) => {
      findStream(registry, params).close('deleted by the management API');
      return done;
    });
  };
}
