import type { FastifyPluginAsync } from 'fastify';
import type { CrossDomainsConfig } from '../config/model.ts';
import type { Logger } from '../log/log.ts';
import type { AuditLog } from '../management/audit/log.ts';
import { tellActions } from './actions.ts';
import { isReadOnly, requireToken } from './auth.ts';
import { countCalls, type CallCounts } from './call-counts.ts';
import { userOf } from './caller.ts';
import { auditChanges, logChanges } from './change-log.ts';
import { answerCors } from './cors.ts';
import { describeApi } from './description.ts';
import { CONTENT_TYPE } from './envelope.ts';
import { addEtags } from './etag.ts';
import { requireHostName } from './host-names.ts';
import { hideSecrets } from './read-only.ts';
import { ReadOnlyLinks } from './read-only-links.ts';
import { readYourWrites } from './forwarding/read-your-writes.ts';
import { readOnlyLinkRoutes } from './routes/read-only-links.ts';
import { addResources, speakJson, type ResourceOptions } from './resources.ts';
import { answerAtOwner, type StreamOwners } from './forwarding/stream-owner.ts';
import { WrongCredentials } from './wrong-credentials.ts';

export interface ApiOptions extends ResourceOptions {
  readonly config: {
    readonly accessToken: string;
    /** Hosts that the API may be called by; `*` for any. */
    readonly hostNames: readonly string[];
    readonly crossDomains?: CrossDomainsConfig;
    readonly etag: boolean;
  };
  readonly owners: StreamOwners;
  readonly log: Logger;
  /** Log of calls that may have changed something. */
  readonly audit?: AuditLog;
  readonly calls?: CallCounts | undefined;
  /** Further routes behind the token that are no part of the API, such as metrics. */
  readonly beside?: FastifyPluginAsync | undefined;
}

/** The management API (docs/compatibility.md#rest-answers): register it on a port of its own. */
export function apiRoutes(options: ApiOptions): FastifyPluginAsync {
  const { config, version, dynamic, owners, log, audit, calls, beside } = options;
  const user = userOf(config.accessToken);
  const wrongCredentials = new WrongCredentials();
  const links = new ReadOnlyLinks(config.accessToken);
  return async (app) => {
    speakJson(app);
    if (calls !== undefined) countCalls(app, calls);

    // CORS first, for every answer, including rejections; then the checks of the caller
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
    await requireToken(app, config.accessToken, links, wrongCredentials);
    hideSecrets(app, isReadOnly);
    tellActions(app);
    logChanges(app, log.child({ module: 'api' }));
    if (audit !== undefined) auditChanges(app, audit, ({ ip }) => ({ user, remote: ip }));
    if (config.etag) addEtags(app);
    readYourWrites(app, dynamic, options.others && options.directory);

    // before the hooks that describe calls of the API
    if (beside !== undefined) await app.register(beside);
    await describeApi(app, version);
    answerAtOwner(app, owners, user);
    await addResources(app, options, user);
    await app.register(readOnlyLinkRoutes(links));
  };
}
