import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Value from 'typebox/value';
import { StandbySpec } from '../../channels/standby/kind.ts';
import type { Standbys } from '../../channels/standby/standbys.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { inStore } from '../../tasks/store-failure.ts';
import { shown } from '../config-schema.ts';
import { done, noPayload, objectOf } from '../envelope.ts';
import { findApplication, StreamPath } from '../lookup.ts';

const STREAM = '/v1/vhosts/:vhost/apps/:app/streams/:stream(^[^:]+$)';

/** Slates of single streams. The node that has the stream answers, or any node if none has it. */
export function standbyRoutes(registry: Registry, standbys: Standbys): FastifyPluginAsyncTypebox {
  return async (app) => {
    const params = StreamPath;
    const start = {
      params,
      body: shown('StandbyCreation'),
      response: noPayload,
      summary: 'Show a slate while the publisher of a stream is away',
    };
    app.post(`${STREAM}::startStandby`, { schema: start }, async ({ params: path, body }) => {
      const application = findApplication(registry, path);
      const spec = objectOf(body ?? {});
      if (!Value.Check(StandbySpec, spec))
        throw kilnError('taskInvalid', 'Possible parameters are [file], [text], [silenceTimeoutMs] and [maxDuration]');
      await inStore(() => standbys.start(application, path.stream, spec));
      return done;
    });

    const stop = { params, response: noPayload, summary: 'Have a stream end with its publisher' };
    app.post(`${STREAM}::stopStandby`, { schema: stop }, async ({ params: path }) => {
      const application = findApplication(registry, path);
      await inStore(() => standbys.stop(application, path.stream));
      return done;
    });
  };
}
