import fastJsonStringify from 'fast-json-stringify';
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import Value from 'typebox/value';

/**
 * Has the routes that are added to an app from now on read and written by their schemas. Requests that do not fit fail with 400,
 * naming what is wrong where.
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

/** Compiles a schema for the first answer that it is for: most are never asked for, and all together take long. */
const write: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let compiled: ((answer: unknown) => string) | undefined;
  return (answer) => (compiled ??= fastJsonStringify(schema))(answer);
};
