import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Assets, PageName } from './assets.ts';

/** The pages load their own files and talk to their own server, and nothing else. */
const policy = (frameAncestors: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self' blob:",
    "connect-src 'self'",
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

  /** Adds `/-/assets/`, the files that the pages load. */
  constructor(app: FastifyInstance, assets: Assets) {
    this.#assets = assets;
    app.addHook('onSend', async (_request, reply) => {
      reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
    });
    app.get<{ Params: { '*': string } }>('/-/assets/*', async (request, reply) => {
      const [name = '', build] = request.params['*'].split('/').reverse();
      const file = assets.files.get(name);
      if (file === undefined) return this.notFound(request, reply);
      return file.send(request, reply, build === assets.build ? FOR_EVER : REVALIDATE);
    });
  }

  /** @param frameAncestors sites that may show the page in a frame */
  send(name: PageName, request: FastifyRequest, reply: FastifyReply, frameAncestors = "'self'"): Promise<FastifyReply> {
    reply.header('content-security-policy', policy(frameAncestors));
    return this.#assets.pages[name].send(request, reply, REVALIDATE);
  }

  notFound(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.send('not-found.html', request, reply.code(404));
  }
}
