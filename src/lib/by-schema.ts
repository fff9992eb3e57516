import fastJsonStringify from 'fast-json-stringify';
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler, FastifyServerOptions } from 'fastify';
import type { TSchema } from 'typebox';
import Value from 'typebox/value';

/**
 * Makes routes that are added from now on read and write by their schemas. Requests that do not match fail with 400, which
 * names the fault and its place.
 */
export function goBySchemas(app: FastifyInstance): void {
  app.setValidatorCompiler(check).setSerializerCompiler(write);
}

const check: FastifySchemaCompiler<TSchema> =
  ({ schema, httpPart }) =>
  (given) => {
    if (Value.Check(schema, given)) return true;
    const [first] = Value.Errors(schema, given);
    return { error: new Error(`${httpPart}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`) };
  };

/** Compiles a schema at its first use: most are never used, and all together take long. */
const write: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let compiled: ((answer: unknown) => string) | undefined;
  return (answer) => (compiled ??= fastJsonStringify(schema))(answer);
};

/** Settings of Fastify by which it loads no compilers of its own. Its types allow no others. */
export const BY_SCHEMAS: FastifyServerOptions['schemaController'] = {
  compilersFactory: { buildValidator: () => check as never, buildSerializer: () => write as never },
};
