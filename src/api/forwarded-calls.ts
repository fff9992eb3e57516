import Fastify, { type FastifyInstance } from 'fastify';
import type { NodeIdentity } from '#cluster';
import type { Logger } from '../log/log.ts';
import type { AuditLog } from '../management/audit/log.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { logFailures } from '../web/request-log.ts';
import { CALLER_HEADERS, carriedCaller } from './caller.ts';
import { auditChanges } from './change-log.ts';
import { API_REQUEST, type ApiAnswer, type ApiRequest } from './forwarding/peer-request.ts';
import { isStale, markStale } from './forwarding/read-your-writes.ts';
import { addResources, speakJson, type ResourceOptions } from './resources.ts';

const POSITION = 'kiln-position';

/**
 * Answers calls of the management API that other nodes forward here. The forwarding node has admitted them; they are not
 * forwarded again.
 */
export class PeerApi {
  readonly #app: FastifyInstance;

  private constructor(app: FastifyInstance) {
    this.#app = app;
  }

  /** Answers calls until it is closed. */
  static async open(
    options: ResourceOptions & { readonly audit?: AuditLog },
    calls: PeerCalls,
    log: Logger,
  ): Promise<PeerApi> {
    const { dynamic, audit } = options;
    const api = new PeerApi(Fastify({ ...logFailures(log), requestIdHeader: 'x-request-id', pluginTimeout: 0 }));
    speakJson(api.#app);
    if (audit !== undefined) auditChanges(api.#app, audit, carriedCaller);
    api.#app.addHook('preHandler', async ({ headers }, reply) => {
      // the forwarding node has asked the store: this one need not, unless it is behind
      await dynamic.sync(headers[POSITION]?.toString());
      if (dynamic.stale) markStale(reply);
    });
    await addResources(api.#app, options);
    await api.#app.ready();
    calls.answer(API_REQUEST, (request, from) => api.#answer(request, from));
    return api;
  }

  async close(): Promise<void> {
    await this.#app.close();
  }

  async #answer(request: ApiRequest, from: NodeIdentity): Promise<ApiAnswer> {
    const { method, url, requestId, host, user = '', remote = '', body, position } = request;
    const response = await this.#app.inject({
      method: method as 'GET',
      url,
      headers: {
        'x-request-id': requestId,
        host,
        'content-type': 'application/json',
        [CALLER_HEADERS.user]: encodeURIComponent(user),
        [CALLER_HEADERS.remote]: encodeURIComponent(remote),
        [CALLER_HEADERS.takenBy]: encodeURIComponent(from.id),
        ...(position !== undefined && { [POSITION]: position }),
      },
      payload: body ?? '',
    });
    const { statusCode: status, headers, body: text } = response;
    return { status, type: headers['content-type']?.toString(), stale: isStale(headers), body: text };
  }
}
