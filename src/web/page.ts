import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Assets, PageName } from './assets.ts';

/** The pages load their own files and talk to their own server, and to those that it may send them to. */
const policy = (frameAncestors: string, followed: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    // the text tracks of the player page have an empty source
    ["media-src 'self' blob: data:", ...followed].join(' '),
    ["connect-src 'self'", ...followed].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors}`,
  ].join('; ');

const REVALIDATE = 'no-cache';
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Whether the client is a browser that shows what it gets, and not a player or a program. */
export function wantsPage({ method, headers }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && headers.accept?.includes('text/html') === true;
}

/** Sends pages of one port, with what their browser is to know. */
export class Pages {
  readonly #assets: Assets;
  readonly #followed: () => readonly string[];

  /**
   * Adds `/-/assets/`, the files that the pages load.
   * @param followed sources of a Content-Security-Policy to which viewers may be redirected
   */
  constructor(app: FastifyInstance, assets: Assets, followed: () => readonly string[] = () => []) {
    this.#assets = assets;
    this.#followed = followed;
    app.addHook('onSend', async (_request, reply) => {
      reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
    });
    app.get<{ Params: { '*': string } }>('/-/assets/*', async (request, reply) => {
      const path = request.params['*'];
      const [build, ...name] = path.split('/');
      const file = assets.files.get(name.join('/')) ?? assets.files.get(path);
      if (file === undefined) return this.notFound(request, reply);
      return file.send(request, reply, build === assets.build ? FOR_EVER : REVALIDATE);
    });
  }

  /** @param frameAncestors sites that may show the page in a frame */
  send(name: PageName, request: FastifyRequest, reply: FastifyReply, frameAncestors = "'self'"): Promise<FastifyReply> {
    reply.header('content-security-policy', policy(frameAncestors, this.#followed()));
    return this.#assets.pages[name].send(request, reply, REVALIDATE);
  }

  notFound(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.send('not-found.html', request, reply.code(404));
  }
}
