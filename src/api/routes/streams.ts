import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { shown } from '../config-schema.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath } from '../lookup.ts';
import { readPullRequest } from '../pull-request.ts';
import { streamInfo } from '../stream-info.ts';
import { StreamInfo } from '../stream-schema.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/streams';

export function streamRoutes(registry: Registry, directory: StreamDirectory): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      params: ApplicationPath, response: answers(Type.Array(Type.String())), summary: 'List the streams',
    };
    app.get(BASE, { schema: list }, async ({ params }) => {
      const application = findApplication(registry, params);
      const own = Array.from(application.streams(), ({ name }) => name);
      return ok([...new Set([...own, ...(await directory.elsewhere(application))])]);
    });

    const body = shown('PullCreation');
    const creation = { params: ApplicationPath, body, response: noPayload, summary: 'Pull a stream' };
    app.post(BASE, { schema: creation }, ({ params, body, log, protocol, host, url }) => {
      const application = findApplication(registry, params);
      const { name, urls } = readPullRequest(body);
      if (application.stream(name) !== undefined) throw kilnError('streamExists');
      log.warn({ stream: name, urls }, 'nothing here pulls streams of that scheme');
      throw kilnError('pullFailed', `${protocol}://${host}${url}`);
    });

    const read = { params: StreamPath, response: answers(StreamInfo), summary: 'Show a stream' };
    app.get(`${BASE}/:stream`, { schema: read }, ({ params }) =>
      ok(streamInfo(findStream(registry, params))),
    );

    const removal = { params: StreamPath, response: noPayload, summary: 'End a stream and disconnect its source' };
    app.delete(`${BASE}/:stream`, { schema: removal }, ({ params }) => {
      findStream(registry, params).end('deleted by the management API');
      return done;
    });
  };
}
