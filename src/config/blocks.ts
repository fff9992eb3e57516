import Type, { type TProperties, type TSchema } from 'typebox';

/**
 * Building blocks of the element descriptions in `elements/`. One description gives the TypeScript
 * type, the XML element names, the JSON keys, the defaults and the checks:
 *
 * - a property of an object is required when it is neither `Type.Optional` nor has a `default`;
 *   with a default it is always there in the resolved configuration;
 * - a key is the element's name with a small first letter; `xml` names the element where that rule
 *   (and its exceptions, in `names.ts`) does not;
 * - `is` completes `"<value>" is not ...` in error messages.
 */
export interface Annotations {
  readonly xml?: string;
  /** Name of the item elements, of a list whose items stand in a container element. */
  readonly item?: string;
  readonly is?: string;
  /** Other keys accepted in JSON for this one. */
  readonly aliases?: readonly string[];
  /** An element that tunes threads or memory of OvenMediaEngine: checked, kept and shown, but without effect. */
  readonly inert?: boolean;
  /** In XML, treats the element as absent if all of its text is environment variables that are not set or are empty. */
  readonly ifSet?: boolean;
  /** Elements of other versions of OvenMediaEngine that are unknown here, and what to write instead. */
  readonly former?: ReadonlyMap<string, string>;
  /** Whether the management API shows the default of an element that was not given. */
  readonly shown?: boolean;
  /** Turns a given value into the kept one; undefined when it cannot. */
  readonly convert?: (given: unknown) => unknown;
  /** Checks what needs more than one property. */
  readonly rule?: Rule;
  /** Fills defaults that depend on other values, after the plain ones. */
  readonly complete?: (resolved: never) => void;
}

/** Reports a fault at a path of keys and indexes below the checked object. */
export type Fail = (path: readonly (string | number)[], message: string) => void;
/** @param value the resolved object, defaults filled */
export type Rule = (value: never, fail: Fail) => void;

type Schema<T> = ReturnType<typeof Type.Unsafe<T>>;

export function text(options: Annotations & { default?: string; pattern?: string } = {}) {
  if ('default' in options) return Type.String({ is: 'a text', ...options });
  return Type.String({ is: 'a text of at least one character', minLength: 1, ...options });
}

export function flag(value?: boolean, options: Annotations = {}) {
  return Type.Boolean({ is: 'true or false', ...(value === undefined ? {} : { default: value }), ...options });
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

function bounds({ min, max }: Bounds): { minimum?: number; maximum?: number } {
  return { ...(min === undefined ? {} : { minimum: min }), ...(max === undefined ? {} : { maximum: max }) };
}

function range(noun: string, { min, max }: Bounds): string {
  if (min !== undefined && max !== undefined) return `${noun} (${min}..${max})`;
  return min === undefined ? noun : `${noun} of at least ${min}`;
}

/** An integer. Bounds include their ends; the lower one is 0 by default. */
export function integer(value?: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds = {}) {
  const is = range('an integer', max === Number.MAX_SAFE_INTEGER ? { min } : { min, max });
  return Type.Integer({ is, ...bounds({ min, max }), ...(value === undefined ? {} : { default: value }) });
}

/** A number, not negative by default. */
export function decimal(value?: number, { min = 0, max = 1e9 }: Bounds = {}) {
  const is = range('a number', max === 1e9 ? { min } : { min, max });
  return Type.Number({ is, ...bounds({ min, max }), ...(value === undefined ? {} : { default: value }) });
}

/** One of several words, accepted in any case and kept as spelled here. */
export function choice<const T extends string>(words: readonly T[], value?: T): Schema<T> {
  const convert = (given: unknown): unknown =>
    typeof given === 'string' ? words.find((word) => word.toLowerCase() === given.trim().toLowerCase()) : undefined;
  const is = words.length === 1 ? words[0] : `one of ${words.join(', ')}`;
  return Type.Unsafe<T>({ type: 'string', enum: [...words], is, convert, ...(value ? { default: value } : {}) });
}

/** A text with a syntax of its own, kept as the result of `parse` (undefined: it is wrong). */
export function parsed<T>(
  is: string,
  parse: (given: string) => T | undefined,
  options: Annotations & { default?: T } = {},
): Schema<T> {
  const convert = (given: unknown): unknown => (typeof given === 'string' ? parse(given.trim()) : undefined);
  return Type.Unsafe<T>({ type: 'string', is, convert, ...options });
}

/** Elements that repeat in their parent: an array under one key. None is an empty array. */
export function repeated<T extends TSchema>(item: T, xml?: string, options: Annotations = {}) {
  return Type.Array(item, { default: [], ...(xml === undefined ? {} : { xml }), ...options });
}

/** A container element of nothing but `item` elements: an array under the container's key. */
export function contained<T extends TSchema>(item: T, name: string, options: Annotations = {}) {
  return Type.Array(item, { default: [], item: name, ...options });
}

export function atLeastOne<T extends ReturnType<typeof repeated>>(list: T): T {
  const { default: _, ...required } = list as T & { default?: unknown };
  return { ...required, minItems: 1 } as unknown as T;
}

/** An element that exists with its defaults if it is not given. */
export function section<T extends TProperties>(properties: T, options: Annotations = {}) {
  return Type.Object(properties, { default: {}, ...options });
}

/** An element that is absent if it is not given. */
export function optional<T extends TProperties>(properties: T, options: Annotations = {}) {
  return Type.Optional(Type.Object(properties, { ...options }));
}

/** Marks an element as one without effect. For an optional one, mark the schema inside `Type.Optional`. */
export function inert<T extends TSchema>(schema: T): T {
  return { ...schema, inert: true };
}

/**
 * Marks an optional or default element as one that an environment variable may leave empty. For an optional one, mark the
 * schema inside `Type.Optional`.
 */
export function ifSet<T extends TSchema>(schema: T): T {
  return { ...schema, ifSet: true };
}

/** An element that only other or older servers use: dropped with a warning. */
export function ignored() {
  return Type.Optional(Type.Unsafe<undefined>({ ignored: true }));
}
