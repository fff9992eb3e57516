import Fastify from 'fastify';
import test from 'ava';
import { meantMediaType, takeMeantTypes } from '../../../src/lib/media-type.ts';

const MEANT: readonly (readonly [header: string, type: string | undefined])[] = [
  ['application/json', 'application/json'],
  ['Application/JSON;charset=UTF-8', 'application/json'],
  ['application/json charset=utf-8', 'application/json'],
  ['application/json, application/json', 'application/json'],
  ['application/json; charset=utf-8, application/json', 'application/json'],
  ['application/json;', 'application/json'],
  ['application/json, text/plain', undefined],
  ['application/json application/xml', undefined],
  ['application/json,', undefined],
  ['json', undefined],
  ['a/b/c', undefined],
  ['application/json\t;x="a/b"', 'application/json'],
  // what takes long to match is not looked at
  [`a/b${' '.repeat(16_000)}/`, undefined],
  ['', undefined],
];

test('the type that a malformed header means', (t) => {
  for (const [header, type] of MEANT) t.is(meantMediaType(header), type, header);
});

test('bodies are taken whose type is empty, sent twice or lacks a semicolon; other malformed types are 415', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  takeMeantTypes(app);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.post('/', (request) => ({ body: request.body }));
  const post = async (type: string) =>
    (await app.inject({ method: 'POST', url: '/', headers: { 'content-type': type }, payload: '{}' })).statusCode;
  for (const type of ['', ' ', 'application/json, application/json', 'application/json charset=utf-8']) {
    t.is(await post(type), 200, type);
  }
  for (const type of ['json', 'application/json, text/plain', 'application/json application/xml']) {
    t.is(await post(type), 415, type);
  }
});
