import { STATUS_CODES } from 'node:http';
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify';
import { goBySchemas } from '../lib/by-schema.ts';
import type { Version } from '../version.ts';
import { configSchemas, showReferences, type SchemaName } from './config-schema.ts';
import { docsPage } from './docs-page.ts';
import { ErrorBody } from './envelope.ts';
import { EXAMPLES } from './examples.ts';

const TITLE = 'Kiln management API';
const ABOUT = `Compatible with OvenMediaEngine's REST API. Every answer is an envelope of \`statusCode\`, \`message\`
and, where there is something to tell, \`response\`; a batch answers with an array of them.`;

const CLASSES: Readonly<Record<string, string>> = {
  '2XX': 'Done; 207 when the items of a batch have different outcomes',
  '4XX': 'Rejected; the message says why',
  '5XX': 'Failed; the reason is in the log',
};

const content = { 'application/json': { schema: ErrorBody } };
const EARLY_ANSWERS = {
  401: {
    description: 'The credential is missing or wrong',
    headers: { 'WWW-Authenticate': { schema: { type: 'string' } } },
    content,
  },
  403: { description: 'The host name is not one of Managers/Host/Names, or the object is read-only', content },
  429: {
    description: 'Too many wrong credentials came from this address',
    headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer' } } },
    content,
  },
};

interface Reference {
  readonly $ref?: string;
}

interface Operation {
  readonly requestBody?: {
    readonly content: Record<
      string,
      { readonly schema?: Reference & { readonly items?: Reference }; example?: unknown }
    >;
  };
  readonly responses: Record<string, object>;
}

/** Parts of an OpenAPI document that are completed here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Record<string, object>;
}

/**
 * Serves `/openapi.json`, made of the schemas of the routes that are registered after it, and `/docs`, a page that shows it.
 * Both require the token, which a browser asks its user for. The document is made at the first request.
 */
export async function describeApi(app: FastifyInstance, { version }: Version): Promise<void> {
  const routes: RouteOptions[] = [];
  let made: Promise<object> | undefined;
  const document = async (): Promise<object> => {
    try {
      return await (made ??= describe(routes, version));
    } catch (error) {
      // the next request tries again
      made = undefined;
      throw error;
    }
  };
  app.get('/openapi.json', { schema: { hide: true } }, document);
  await app.register(docsPage(TITLE, document));
  app.addHook('onRoute', (route) => void (route.method !== 'HEAD' && routes.push(route)));
}

async function describe(routes: readonly RouteOptions[], version: string): Promise<object> {
  const { default: swagger } = await import('@fastify/swagger');
  const app = Fastify({ exposeHeadRoutes: false, pluginTimeout: 0 });
  goBySchemas(app);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: TITLE, version, description: ABOUT },
      components: { securitySchemes: { token: { type: 'http', scheme: 'basic', description: 'The AccessToken' } } },
      security: [{ token: [] }],
    },
    transform: ({ schema, url }) => ({
      schema: { tags: [tagOf(url)], ...schema },
      // swagger takes an action behind a name for another parameter
      url: url.replace(/:(\w+)(?=::)/g, '{$1}'),
    }),
    transformObject: (described) => {
      if (!('openapiObject' in described)) return described.swaggerObject;
      const document = showReferences(described.openapiObject) as Document;
      describeAnswers(document);
      giveExamples(document);
      return document;
    },
  });
  for (const { method, url, schema } of routes) app.route({ method, url, schema, handler: () => undefined });
  await app.ready();
  return app.swagger();
}

/** Adds the errors of checks that precede every route, and a text for each status. */
function describeAnswers({ paths, components }: Document): void {
  components.responses = EARLY_ANSWERS;
  components.schemas = configSchemas();
  for (const { responses } of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const [status, response] of Object.entries(responses)) {
      responses[status] = { ...response, description: CLASSES[status] ?? STATUS_CODES[status] };
    }
    for (const status of Object.keys(EARLY_ANSWERS)) responses[status] = { $ref: `#/components/responses/${status}` };
  }
}

/** Adds an example to each body whose schema has none. */
function giveExamples({ paths }: Document): void {
  for (const { requestBody } of Object.values(paths).flatMap((item) => Object.values(item))) {
    const { schema = {}, example: own } = requestBody?.content['application/json'] ?? {};
    const example = own ?? exampleOf(schema) ?? [schema.items ?? {}].map(exampleOf);
    if (requestBody !== undefined) requestBody.content['application/json'] = { schema, example };
  }
}

function exampleOf({ $ref }: Reference): object | undefined {
  return $ref === undefined ? undefined : EXAMPLES[$ref.slice($ref.lastIndexOf('/') + 1) as SchemaName];
}

const COLLECTIONS = [
  'sessions',
  'outputProfiles',
  'scheduledChannels',
  'multiplexChannels',
  'streams',
  'apps',
  'vhosts',
];

/** Resource of a path: its last word that is no parameter. */
function tagOf(url: string): string {
  if (url.includes('/stats/')) return 'statistics';
  const words = url.split(/[/:]+/).slice(2);
  return COLLECTIONS.find((collection) => words.includes(collection)) ?? 'server';
}
