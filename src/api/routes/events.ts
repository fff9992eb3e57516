import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Registry } from '../../core/registry.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { batchAnswers, sendBatch } from '../batch.ts';
import { shown } from '../config-schema.ts';
import { done, noPayload } from '../envelope.ts';
import { eventBodies, readEvent } from '../requests/event-request.ts';
import { findApplication, StreamPath } from '../lookup.ts';

const STREAM = '/v1/vhosts/:vhost/apps/:app/streams/:stream(^[^:]+$)';

/** Injects events into an input stream. They go out with all of its output streams. */
export function eventRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    const one = { params: StreamPath, body: shown('StreamEvent'), response: noPayload, summary: 'Send an event' };
    app.post(`${STREAM}::sendEvent`, { schema: one }, ({ params, body }) => {
      inject(findTarget(registry, params), body);
      return done;
    });

    const many = {
      params: StreamPath,
      body: shown('StreamEvent[]'),
      response: batchAnswers(Type.Never()),
      summary: 'Send several events',
    };
    app.post(`${STREAM}::sendEvents`, { schema: many }, ({ params, body }, reply) => {
      const target = findTarget(registry, params);
      const outcomes = eventBodies(body).map((item) => {
        try {
          inject(target, item);
          return { made: undefined };
        } catch (error) {
          if (!(error instanceof KilnError)) throw error;
          return { error };
        }
      });
      return sendBatch(reply, outcomes, () => undefined);
    });
  };
}

interface Target {
  readonly input: InputStream;
  readonly path: string;
}

function findTarget(registry: Registry, { vhost, app, stream }: Static<typeof StreamPath>): Target {
  const path = `${vhost}/${app}/${stream}`;
  const input = findApplication(registry, { vhost, app }).stream(stream);
  if (input === undefined) throw kilnError('eventStreamNotFound', path);
  return { input, path };
}

function inject({ input, path }: Target, body: unknown): void {
  const { codec, target, events } = readEvent(body);
  for (const event of events) if (!input.inject(codec, event, target)) throw kilnError('eventNotInjected', path);
}
