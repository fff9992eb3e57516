import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import Value from 'typebox/value';

/** Checks the parts of a request against the schemas of its route; fails with 400, naming what is wrong where. */
export const checkBySchema: FastifySchemaCompiler<TSchema> =
  ({ schema, httpPart }) =>
  (given) => {
    if (Value.Check(schema, given)) return true;
    const [first] = Value.Errors(schema, given);
    return { error: new Error(`${httpPart}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`) };
  };
