import fastJsonStringify from 'fast-json-stringify';
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler, FastifyServerOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import Value from 'typebox/value';

/**
 * Makes routes that are added from now on read and write by their schemas. Requests that do not match fail with 400, which
 * names the fault and its place.
 */
export function goBySchemas(app: FastifyInstance): void {
  app.setValidatorCompiler(check).setSerializerCompiler(write);
}

// Schemas are compiled at their first use: most are never used, and all together take long.

const check: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: { Check(given: unknown): boolean } | undefined;
  return (given) => {
    if ((compiled ??= Compile(schema)).Check(given)) return true;
    const [first] = Value.Errors(schema, given);
    return { error: new Error(`${httpPart}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`) };
  };
};

const write: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let compiled: ((answer: unknown) => string) | undefined;
  return (answer) => (compiled ??= fastJsonStringify(schema))(answer);
};

/** Settings of Fastify by which it loads no compilers of its own. Its types allow no others. */
export const BY_SCHEMAS: FastifyServerOptions['schemaController'] = {
  compilersFactory: { buildValidator: () => check as never, buildSerializer: () => write as never },
};
