import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import type { Cluster } from '#cluster';
import type { CrossDomainsConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import { kilnError } from '../errors.ts';
import type { DynamicConfig } from '../management/dynamic-config.ts';
import type { CodecInventory } from '../transcode/codecs.ts';
import type { Version } from '../version.ts';
import { requireToken } from './auth.ts';
import { answerCors } from './cors.ts';
import { describeApi } from './description.ts';
import { answerError, CONTENT_TYPE } from './envelope.ts';
import { addEtags } from './etag.ts';
import { requireHostName } from './host-names.ts';
import { applicationRoutes } from './routes/applications.ts';
import { certificateRoutes, type ReloadableCertificates } from './routes/certificates.ts';
import { codecRoutes } from './routes/codecs.ts';
import { nodeRoutes } from './routes/nodes.ts';
import { outputProfileRoutes } from './routes/output-profiles.ts';
import { putRoutes } from './routes/put.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { statisticsRoutes } from './routes/statistics.ts';
import { streamRoutes } from './routes/streams.ts';
import { versionRoutes } from './routes/version.ts';
import { vhostRoutes } from './routes/vhosts.ts';
import { checkBySchema } from './validation.ts';
import { WrongCredentials } from './wrong-credentials.ts';

export interface ApiOptions {
  readonly registry: Registry;
  readonly config: {
    readonly accessToken: string;
    /** Hosts that the API may be called by; `*` for any. */
    readonly hostNames: readonly string[];
    readonly crossDomains?: CrossDomainsConfig;
    /** Whether answers to reads have entity tags. */
    readonly etag: boolean;
  };
  readonly version: Version;
  readonly cluster: Cluster;
  readonly dynamic: DynamicConfig;
  readonly codecs: CodecInventory;
  readonly certificates: ReloadableCertificates;
}

/** The management API (spec/management-api.md): register it on a port of its own. */
export function apiRoutes(options: ApiOptions): FastifyPluginAsync {
  const { registry, config, version, cluster, dynamic, codecs, certificates } = options;
  const wrongCredentials = new WrongCredentials();
  return async (app) => {
    app.setErrorHandler(answerError);
    app.setNotFoundHandler(() => {
      throw kilnError('controllerNotFound');
    });
    app.setValidatorCompiler(checkBySchema);
    takeAnyBody(app);

    // In this order: CORS for every answer, refusals too; then who may ask what.
    app.addHook('onRequest', (request, reply, done) => {
      reply.header('x-request-id', request.id);
      done();
    });
    await answerCors(app, config.crossDomains);
    app.addHook('onRequest', (_request, reply, done) => {
      reply.header('content-type', CONTENT_TYPE);
      done();
    });
    requireHostName(app, config.hostNames);
    await requireToken(app, config.accessToken, wrongCredentials);
    if (config.etag) addEtags(app);
    readYourWrites(app, dynamic);

    await describeApi(app, version);
    await app.register(vhostRoutes(registry, dynamic));
    await app.register(applicationRoutes(registry, dynamic));
    await app.register(outputProfileRoutes(registry, dynamic));
    await app.register(streamRoutes(registry));
    await app.register(sessionRoutes(registry));
    await app.register(statisticsRoutes(registry));
    await app.register(codecRoutes(codecs));
    await app.register(certificateRoutes(registry, certificates));
    await app.register(nodeRoutes(cluster));
    await app.register(putRoutes(registry));
    await app.register(versionRoutes(version));
  };
}

/** Every call sees what was answered before it on any node; where that cannot be known, the answer says so. */
function readYourWrites(app: FastifyInstance, dynamic: DynamicConfig): void {
  app.addHook('preHandler', async (_request, reply) => {
    await dynamic.sync();
    if (dynamic.stale) reply.header('x-kiln-stale', 'true');
  });
}

/** A body is JSON whatever its type says, and none at all is fine: routes say what they need. */
function takeAnyBody(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') return done(null, undefined);
    void parse(request, body as string, done);
  });
}
