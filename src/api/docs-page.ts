import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';

/** The bar would offer to show the documents of others. */
const STYLE = '.swagger-ui .topbar { display: none }';

/** Nothing but what this server sends, whatever a document that it shows may contain. */
const POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "style-src 'self' 'unsafe-inline'",
  "base-uri 'self'",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * `/docs`, a page that shows an OpenAPI document. What it is made of is loaded for the first who asks for it: that takes a tenth of
 * a start, and most nodes are never asked.
 */
export function docsPage(title: string, document: () => object): FastifyPluginAsync {
  return async (app) => {
    let opened: Promise<FastifyInstance> | undefined;
    // one that could not be opened was answered with 500
    app.addHook('onClose', async () => (await opened?.catch(() => undefined))?.close());
    for (const url of ['/docs', '/docs/*']) {
      app.get(url, { schema: { hide: true } }, async ({ url: asked, headers }, reply) => {
        const page = await (opened ??= open(title, document()));
        const answer = await page.inject({ url: asked, headers });
        if (answer.statusCode === 404) return reply.callNotFound();
        const { connection: _, date: __, ...own } = answer.headers;
        return reply.code(answer.statusCode).headers(own).send(answer.rawPayload);
      });
    }
  };
}

async function open(title: string, document: object): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ]);
  const app = Fastify();
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // a validator would be asked at its home
    uiConfig: { docExpansion: 'none', validatorUrl: null },
    theme: { title, css: [{ filename: 'kiln.css', content: STYLE }] },
    staticCSP: POLICY,
  });
  await app.ready();
  return app as unknown as FastifyInstance;
}
