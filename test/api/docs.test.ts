import { Validator } from '@seriousme/openapi-schema-validator';
import Fastify from 'fastify';
import test from 'ava';
import { Compile } from 'typebox/schema';
import { apiRoutes } from '../../src/api/app.ts';
import { apiOptions, basic, openApi, TOKEN } from '../support/api/api.ts';

interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object; readonly example: unknown }> };
  readonly responses: Record<
    string,
    { readonly $ref?: string; readonly description?: string; readonly content?: object }
  >;
  readonly security?: unknown;
}

interface Document {
  readonly openapi: string;
  readonly security: unknown;
  readonly components: {
    readonly schemas: Record<
      string,
      { readonly properties: Record<string, { readonly properties?: object }>; readonly required?: readonly string[] }
    >;
    readonly securitySchemes: object;
    readonly responses: Record<string, { readonly headers?: object }>;
  };
  readonly paths: Record<string, Record<string, Operation>>;
}

/** A path as OpenAPI writes it: names in braces, without patterns, and one colon in front of an action. */
function inDocument(url: string): string {
  return url
    .split('::')
    .map((part) => part.replace(/:(\w+)(\([^)]*\))?/g, '{$1}'))
    .join(':');
}

/** The document, and the routes that it should tell of, as `METHOD path`. */
async function read(): Promise<{ document: Document; routes: Set<string> }> {
  const app = Fastify();
  const routes = new Set<string>();
  app.addHook('onRoute', ({ method, url, schema }) => {
    const hidden = (schema as { hide?: boolean } | undefined)?.hide ?? url.startsWith('/docs');
    for (const one of [method].flat()) {
      if (hidden || one === 'HEAD' || one === 'OPTIONS') continue;
      routes.add(`${one} ${inDocument(url)}`);
    }
  });
  await app.register(apiRoutes(await apiOptions()));
  const response = await app.inject({ url: '/openapi.json', headers: { authorization: basic(TOKEN) } });
  await app.close();
  return { document: response.json(), routes };
}

const { document, routes } = await read();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    path,
    method,
    operation,
  })),
);

test('the document is OpenAPI 3.1', async (t) => {
  t.is(document.openapi, '3.1.0');
  const { valid, errors } = await new Validator().validate(
    structuredClone(document) as object as Record<string, unknown>,
  );
  t.is(errors, undefined);
  t.true(valid);
});

test('the OpenAPI document describes every route and no other', (t) => {
  t.true(routes.size > 20);
  t.deepEqual(operations.map(({ name }) => name).sort(), [...routes].sort());
});

test('every call takes the token as Basic credentials', (t) => {
  t.like(document.components.securitySchemes, { token: { type: 'http', scheme: 'basic' } });
  t.deepEqual(document.security, [{ token: [] }]);
  for (const { operation, name } of operations) t.is(operation.security, undefined, name);
});

test('every name in a path is a parameter, every body has its schema', (t) => {
  for (const { name, path, method, operation } of operations) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
    t.deepEqual(parameters.map((parameter) => parameter.name).sort(), names.sort(), name);
    t.true(
      parameters.every(({ required }) => required),
      name,
    );
    t.is(
      operation.requestBody !== undefined,
      ['patch', 'post'].includes(method) && !/:(reload|drain|undrain|stopStandby)/.test(path),
      name,
    );
    if (operation.requestBody !== undefined) t.truthy(operation.requestBody.content['application/json']?.schema, name);
  }
});

test('every body has an example, which its schema takes', (t) => {
  const bodies = operations.flatMap(({ name, operation }) => {
    const content = operation.requestBody?.content['application/json'];
    return content === undefined ? [] : [{ name, ...content }];
  });
  t.true(bodies.length > 15);
  const { components } = document;
  for (const { name, schema, example } of bodies) {
    const body = Compile({ components, ...schema });
    t.deepEqual(body.Errors(example)[1], [], name);
    t.false(body.Check('something else'), name);
  }
});

test('every answer of the API is described, errors too, each with its meaning', (t) => {
  for (const { name, operation } of operations) {
    const statuses = Object.keys(operation.responses);
    t.true(
      statuses.some((status) => status.startsWith('2')),
      name,
    );
    for (const status of ['401', '403', '429'])
      t.is(operation.responses[status]?.$ref, `#/components/responses/${status}`, name);
    for (const status of ['4XX', '5XX']) t.true(statuses.includes(status), name);
    for (const [status, { $ref, description, content }] of Object.entries(operation.responses)) {
      if ($ref !== undefined) continue;
      t.truthy(content, `${name} ${status}`);
      t.not(description, 'Default Response', `${name} ${status}`);
    }
    t.is(operation.tags.length, 1, name);
    t.regex(operation.summary, /^[A-Z][^.]+$/, name);
  }
  const headers = ['401', '403', '429'].map((status) =>
    Object.keys(document.components.responses[status]?.headers ?? {}),
  );
  t.deepEqual(headers, [['WWW-Authenticate'], [], ['Retry-After']]);
});

test('bodies and payloads of configuration are described by what the configuration is read with', (t) => {
  const { schemas } = document.components;
  const text = JSON.stringify(document);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) t.truthy(schemas[name as string], name);
  const bodyOf = (one: string) =>
    operations.find(({ name }) => name === one)?.operation.requestBody?.content['application/json']?.schema;
  const list = (name: string) => ({ type: 'array', items: { $ref: `#/components/schemas/${name}` } });
  t.deepEqual(bodyOf('POST /v1/vhosts'), list('VirtualHost'));
  t.deepEqual(bodyOf('POST /v1/vhosts/{vhost}/apps'), list('Application'));
  t.deepEqual(bodyOf('PATCH /v1/vhosts/{vhost}/apps/{app}'), { $ref: '#/components/schemas/ApplicationChange' });
  t.deepEqual(schemas.VirtualHost?.required, ['name', 'host']);
  t.deepEqual(schemas.Application?.required, ['name', 'type']);
  t.like(schemas.Application?.properties.providers?.properties, {
    webrtc: { properties: { timeout: { type: 'integer', default: 30_000 } } },
  });
  t.false(['name', 'outputProfiles', 'dynamic'].some((key) => key in (schemas.ApplicationChange?.properties ?? {})));
  t.false(/"(shows|xml|is|aliases)":/.test(text), 'no keyword of our own');
});

test('the page and the document of the API need the token, for which a browser asks', async (t) => {
  const { app } = await openApi(t);
  for (const url of [
    '/docs',
    '/docs/',
    '/docs/json',
    '/docs/yaml',
    '/docs/static/swagger-ui-bundle.js',
    '/openapi.json',
  ]) {
    const refused = await app.inject(url);
    t.is(refused.statusCode, 401, url);
    t.is(refused.headers['www-authenticate'], 'Basic realm="Kiln"');
    t.is((await app.inject({ url, headers: { authorization: basic(TOKEN) } })).statusCode, 200, url);
  }
});

test('the page and its files come from here, with types that a browser takes', async (t) => {
  const { app } = await openApi(t);
  const get = (url: string, more = {}) => app.inject({ url, headers: { authorization: basic(TOKEN), ...more } });
  const { body, headers } = await get('/docs/');
  t.is(headers['content-type'], 'text/html; charset=utf-8');
  t.regex(String(headers['content-security-policy']), /default-src 'self'/);
  const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file as string);
  t.true(files.length >= 4);
  for (const file of files) {
    const url = new URL(file, 'http://here/docs/').pathname;
    const { statusCode, headers: sent } = await get(url);
    t.is(statusCode, 200, file);
    t.regex(String(sent['content-type']), /^(text\/css|(application|text)\/javascript|image\/)/, file);
    const { etag = '' } = sent;
    if (etag !== '') {
      const same = await get(url, { 'if-none-match': String(etag) });
      t.is(same.statusCode, 304, file);
      t.deepEqual([same.headers['content-length'], same.headers['content-type']], [undefined, undefined], file);
    }
    const head = await app.inject({ method: 'HEAD', url, headers: { authorization: basic(TOKEN) } });
    t.deepEqual([head.body, head.headers['content-length']], ['', sent['content-length']], file);
  }
  for (const none of ['/docs/static/none.js', '/docs/static/..%2f..%2fpackage.json', '/docs/none']) {
    t.is((await get(none)).statusCode, 404, none);
  }
  const refused = await get('/docs/static/swagger-ui.css', { range: 'bytes=9999999-' });
  t.is(refused.statusCode, 416);
  t.deepEqual(refused.json(), { message: '[HTTP] Range Not Satisfiable (416)', statusCode: 416 });
});
