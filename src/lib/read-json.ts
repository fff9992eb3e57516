import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';

/** Parses JSON from another node; undefined if it is malformed or does not match the schema. */
export function readJson<S extends TSchema>(schema: S, body: Buffer): Static<S> | undefined {
  const value = parse(body);
  return Value.Check(schema, value) ? value : undefined;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
