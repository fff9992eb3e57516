import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import Value from 'typebox/value';
import type { EnhancedBroadcastingConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import { mediaType } from '../lib/media-type.ts';
import { xmlText } from '../lib/xml-text.ts';
import { EncoderRequest, videoSettings } from './broadcast-ladder.ts';
import { rtmpOrigins, type PublishPorts } from './publish-places.ts';

export interface ClientConfigurationOptions {
  readonly registry: Registry;
  /** Where publishers connect to. */
  readonly publish: Pick<PublishPorts, 'rtmp'>;
  /** Enhanced RTMP, and with it several tracks, is taken. */
  readonly extended: boolean;
}

const PATH = '/:app/GetClientConfiguration';
const JSON_TYPE = 'application/json';
const MAX_BYTES = 64 * 1024;
/** Version of the reference, for encoders that name none. */
const SCHEMA_VERSION = '2024-06-04';
const STREAM_KEY = '{stream_key}';

/** Separates the request from WHIP offers for a stream of that name. */
const BODY = 'body';
const bodyConstraint = {
  name: BODY,
  storage: <Handler>() => {
    const handlers = new Map<unknown, Handler>();
    return {
      get: (type: unknown) => handlers.get(type) ?? null,
      set: (type: unknown, handler: Handler) => void handlers.set(type, handler),
    };
  },
  deriveConstraint: ({ headers }: IncomingMessage) =>
    mediaType(headers['content-type'] ?? '') === JSON_TYPE ? 'json' : undefined,
};

/**
 * `POST /:app/GetClientConfiguration`: the videos that an encoder is to send on one connection of Enhanced RTMP, and its address
 * ("Amazon IVS Multitrack Video Integration API Reference", GetClientConfiguration). It needs no authorization: the publisher that
 * follows is admitted like any other. Errors are JSON, with the text that OBS Studio shows.
 */
export function clientConfigurationRoutes(options: ClientConfigurationOptions): FastifyPluginAsync {
  const { registry, publish, extended } = options;
  return async (fastify) => {
    fastify.setErrorHandler(async (error: Error & { statusCode?: number }, request, reply) => {
      const status = error instanceof KilnError ? error.status : (error.statusCode ?? 500);
      if (status >= 500) request.log.error({ err: error }, 'an encoder could not be configured');
      reply.code(status);
      return { status: { result: 'error', html_en_us: xmlText(status < 500 ? error.message : 'Internal error') } };
    });
    if (!fastify.hasConstraintStrategy(BODY)) fastify.addConstraintStrategy(bodyConstraint);
    fastify.post(PATH, { bodyLimit: MAX_BYTES, constraints: { [BODY]: 'json' } }, async (request, reply) => {
      const { app } = request.params as { app: string };
      const config = configOf(registry, request, app);
      const origins = rtmpOrigins(request.hostname, publish.rtmp ?? {});
      if (config === undefined || origins.length === 0) throw kilnError('broadcastingUnavailable', app);
      const asked: unknown = request.body;
      if (!Value.Check(EncoderRequest, asked)) throw kilnError('encoderRequestInvalid', faultOf(asked));
      const encoder_configurations = videoSettings(config, asked, !extended);
      if (encoder_configurations.length === 0) throw kilnError('noRenditionFits');
      reply.header('cache-control', 'no-store');
      return {
        meta: {
          config_id: randomUUID(),
          schema_version: asked.schema_version ?? SCHEMA_VERSION,
          service: asked.service ?? 'IVS',
        },
        ingest_endpoints: origins.map((origin) => ({
          protocol: origin.startsWith('rtmps') ? 'RTMPS' : 'RTMP',
          url_template: `${origin}/${encodeURIComponent(app)}/${STREAM_KEY}`,
          authentication: asked.authentication ?? '',
        })),
        encoder_configurations,
        audio_configurations: {
          live: [{ codec: 'aac', track_id: 0, channels: 2, settings: { bitrate: config.audioBitrate / 1000 } }],
        },
      };
    });
  };
}

/** @throws applicationNotFound */
function configOf(
  registry: Registry,
  { hostname }: FastifyRequest,
  app: string,
): EnhancedBroadcastingConfig | undefined {
  const vhost = registry.resolve(hostname);
  const application = vhost?.applications.get(app);
  if (application === undefined) throw kilnError('applicationNotFound', vhost?.name ?? hostname, app);
  return application.config.providers.rtmp?.enhancedBroadcasting;
}

/** Where a body differs first from what an encoder sends. */
function faultOf(asked: unknown): string {
  const [fault] = Value.Errors(EncoderRequest, asked);
  return fault === undefined ? 'it is not an object' : `${fault.instancePath || 'it'} ${fault.message}`;
}
