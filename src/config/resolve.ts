import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { Annotations, Fail } from './blocks.ts';

/** Keys and list positions from the root of what was read. */
export type Path = readonly (string | number)[];

export interface Problem {
  readonly path: Path;
  readonly message: string;
}

export type Described = TSchema & Annotations & { readonly default?: unknown; readonly ignored?: boolean };

export function isObjectSchema(schema: TSchema): schema is TObject & Annotations {
  return (schema as { type?: unknown }).type === 'object';
}

export type ListSchema = TArray<Described> & Annotations & { readonly minItems?: number };

export function isListSchema(schema: TSchema): schema is ListSchema {
  return (schema as { type?: unknown }).type === 'array';
}

const given = new WeakMap<object, unknown>();

/**
 * Value that was given for a resolved element (a virtual host, an application, an output profile, or anything in them),
 * without defaults, as the management API shows it. Frozen.
 */
export function explicit(resolved: object): unknown {
  return given.get(resolved);
}

/**
 * Fills the defaults of a value that `readConfig` found valid. The result is not frozen yet.
 * @param problems receives the faults that rules of the elements find; undefined: rules are not run
 */
export function resolve<S extends TSchema>(
  schema: S,
  value: unknown,
  problems?: Problem[],
  path: Path = [],
): Static<S> {
  const described = schema as Described;
  let resolved: unknown = value;
  if (isListSchema(schema)) {
    resolved = (value as unknown[]).map((item, index) => resolve(schema.items, item, problems, [...path, index]));
  } else if (isObjectSchema(schema)) {
    resolved = resolveObject(schema, value as Record<string, unknown>, problems, path);
    given.set(resolved as object, value);
    described.complete?.(resolved as never);
  }
  if (problems !== undefined && described.rule !== undefined) {
    const fail: Fail = (below, message) => problems.push({ path: [...path, ...below], message });
    described.rule(resolved as never, fail);
  }
  return resolved as Static<S>;
}

function resolveObject(schema: TObject, value: Record<string, unknown>, problems: Problem[] | undefined, path: Path) {
  const required = new Set<string>(schema.required);
  const resolved: Record<string, unknown> = {};
  for (const [key, property] of Object.entries(schema.properties)) {
    const own = value[key] ?? (required.has(key) ? (property as Described).default : undefined);
    if (own !== undefined) resolved[key] = resolve(property, own, problems, [...path, key]);
  }
  return resolved;
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const item of Object.values(value)) deepFreeze(item);
  return value;
}
