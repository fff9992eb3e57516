import Fastify, { type FastifyInstance } from 'fastify';
import type { PeerRequest, PeerResponse } from '#cluster';
import type { Logger } from '../log.ts';
import type { PeerCalls } from '../origins/peer-calls.ts';
import { readYourWrites } from './read-your-writes.ts';
import { addResources, speakJson, type ResourceOptions } from './resources.ts';
import { OWNERS_WORD, PEER_API } from './stream-owner.ts';

/**
 * Answers calls of the management API that other nodes carry here, because this one has what they are about. They were
 * let in where they came from, and are carried no further.
 */
export class PeerApi {
  readonly #app: FastifyInstance;

  private constructor(app: FastifyInstance) {
    this.#app = app;
  }

  /** Answers from now on, until it is closed. */
  static async open(options: ResourceOptions, calls: PeerCalls, log: Logger): Promise<PeerApi> {
    const app = Fastify({ loggerInstance: log.child({}, { level: 'warn' }), requestIdHeader: 'x-request-id' });
    const api = new PeerApi(app as unknown as FastifyInstance);
    speakJson(api.#app);
    readYourWrites(api.#app, options.dynamic);
    await addResources(api.#app, options);
    await app.ready();
    calls.add(`${PEER_API}/`, (request) => api.#answer(request));
    return api;
  }

  async close(): Promise<void> {
    await this.#app.close();
  }

  async #answer({ method, path, headers, body }: PeerRequest): Promise<PeerResponse> {
    const response = await this.#app.inject({
      method: method as 'GET',
      url: path.slice(PEER_API.length),
      headers: { ...headers, 'content-type': 'application/json' },
      payload: body,
    });
    const told = OWNERS_WORD.flatMap((name) => {
      const value = response.headers[name];
      return typeof value === 'string' ? [[name, value] as const] : [];
    });
    return { status: response.statusCode, headers: Object.fromEntries(told), body: response.rawPayload };
  }
}
