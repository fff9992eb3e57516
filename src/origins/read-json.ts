import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';

/** JSON of another node. @returns undefined when it is none, or has another shape: that node may be of another version */
export function readJson<S extends TSchema>(body: Buffer, schema: S): Static<S> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return Value.Check(schema, value) ? value : undefined;
}
