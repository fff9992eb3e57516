import Fastify, { type FastifyBaseLogger, type FastifyPluginAsync } from 'fastify';
import { answerError } from './envelope.ts';

/** Hides the bar, which offers to show documents of other servers. */
const STYLE = '.swagger-ui .topbar { display: none }';

/** Admits only what this server sends, whatever a shown document contains. */
const POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "style-src 'self' 'unsafe-inline'",
  "base-uri 'self'",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Serves `/docs`, a page that shows an OpenAPI document. Its parts are loaded at the first request: that takes a tenth of a
 * start, and most nodes never get one.
 */
export function docsPage(title: string, document: () => Promise<object>): FastifyPluginAsync {
  return async (app) => {
    let opened: ReturnType<typeof open> | undefined;
    const opening = async (): ReturnType<typeof open> => {
      try {
        return await (opened ??= document().then((made) => open(title, made, app.log)));
      } catch (error) {
        // the next request tries again
        opened = undefined;
        throw error;
      }
    };
    app.addHook('onClose', async () => await opened?.then((page) => page.close()));
    for (const url of ['/docs', '/docs/*']) {
      app.get(url, { schema: { hide: true } }, async ({ url: asked, headers }, reply) => {
        const answer = await (await opening()).inject({ url: asked, headers });
        if (answer.statusCode === 404) return reply.callNotFound();
        const { connection: _, date: __, ...own } = answer.headers;
        reply.code(answer.statusCode).headers(own);
        if (answer.statusCode === 304) return reply.removeHeader('content-type').removeHeader('content-length').send();
        // a file has a tag already; the page, a text, may get one as answers do
        return reply.send(own.etag === undefined ? answer.payload : answer.rawPayload);
      });
    }
  };
}

async function open(title: string, document: object, log: FastifyBaseLogger) {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ]);
  const app = Fastify({ loggerInstance: log.child({}, { level: 'warn' }), pluginTimeout: 0 });
  app.setErrorHandler(answerError);
  // its types lack OpenAPI 3.1
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // no requests to the home of the validator
    uiConfig: { docExpansion: 'none', validatorUrl: null },
    theme: { title, css: [{ filename: 'kiln.css', content: STYLE }] },
    staticCSP: POLICY,
  });
  await app.ready();
  return app;
}
