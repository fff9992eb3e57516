import type { Static, TObject, TSchema } from 'typebox';
import Value from 'typebox/value';
import {
  deepFreeze,
  isListSchema,
  isObjectSchema,
  resolve,
  type Described,
  type ListSchema,
  type Path,
  type Problem,
} from './resolve.ts';

export type { Problem };

export type Reading<T> =
  /** `config` is frozen. `warnings` are about elements without effect, `inert` has those that tune only OvenMediaEngine. */
  | { readonly ok: true; readonly config: T; readonly warnings: readonly Problem[]; readonly inert: readonly Path[] }
  /** At least one problem, in the order of the text. */
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] };

const MAX_ITEMS = 4096;
const MAX_FINDINGS = 100;
const MAX_SHOWN = 80;

/**
 * Reads an element from JSON with the management API's keys: checks it, fills its defaults, freezes it. The given values
 * without defaults stay available through `explicit`. Unknown keys become warnings.
 */
export function readConfig<S extends TSchema>(schema: S, json: unknown): Reading<Static<S>> {
  const reader = new Reader();
  const value = reader.read(schema, json, []);
  const { problems, warnings, inert } = reader;
  if (problems.length > 0) return { ok: false, problems, warnings };
  const config = resolve(schema, deepFreeze(value), problems);
  return problems.length > 0
    ? { ok: false, problems, warnings }
    : { ok: true, config: deepFreeze(config), warnings, inert };
}

/** Builds the explicit value: only what was given, checked and in its canonical form. */
class Reader {
  readonly problems: Problem[] = [];
  readonly warnings: Problem[] = [];
  readonly inert: Path[] = [];

  read(schema: Described, json: unknown, path: Path): unknown {
    if (schema.ignored === true) return this.#warn(path, 'has no effect');
    if (schema.inert === true && this.inert.length < MAX_FINDINGS) this.inert.push(path);
    if (isListSchema(schema)) return this.#list(schema, json, path);
    if (isObjectSchema(schema)) return this.#object(schema, json, path);
    const value = schema.convert === undefined ? checked(schema, json) : schema.convert(json);
    return value === undefined ? this.#fail(path, `${show(json)} is not ${schema.is}`) : value;
  }

  #list({ items, minItems = 0 }: ListSchema, json: unknown, path: Path): unknown {
    if (!Array.isArray(json)) return this.#fail(path, `${show(json)} is not a list`);
    if (json.length > MAX_ITEMS) return this.#fail(path, `has ${json.length} items: more than ${MAX_ITEMS}`);
    if (json.length < minItems) return this.#fail(path, 'is missing');
    return json.map((item, index) => this.read(items, item, [...path, index]));
  }

  #object(schema: TObject, json: unknown, path: Path): unknown {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) {
      return this.#fail(path, `${show(json)} is not an object`);
    }
    const required = new Set<string>(schema.required);
    const unknown = new Set(Object.keys(json));
    const value: Record<string, unknown> = {};
    for (const [key, property] of Object.entries(schema.properties) as [string, Described][]) {
      const names = [key, ...(property.aliases ?? [])];
      const name = names.find((candidate) => Object.hasOwn(json, candidate));
      for (const candidate of names) unknown.delete(candidate);
      if (name !== undefined) {
        const own = this.read(property, (json as Record<string, unknown>)[name], [...path, key]);
        if (own !== undefined) value[key] = own;
      } else if (required.has(key) && property.default === undefined) {
        this.#fail([...path, key], 'is missing');
      } else if (property.shown === true) {
        value[key] = property.default;
      }
    }
    for (const key of unknown) this.#warn([...path, key], 'is unknown and has no effect');
    return value;
  }

  #fail(path: Path, message: string): undefined {
    if (this.problems.length < MAX_FINDINGS) this.problems.push({ path, message });
  }

  #warn(path: Path, message: string): undefined {
    if (this.warnings.length < MAX_FINDINGS) this.warnings.push({ path, message });
  }
}

function checked(schema: TSchema, value: unknown): unknown {
  return Value.Check(schema, value) ? value : undefined;
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}..."`;
}
