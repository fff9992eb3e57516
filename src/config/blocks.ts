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
  /** Of a list whose items stand in a container element: the name of the item elements. */
  readonly item?: string;
  readonly is?: string;
  /** Other keys accepted in JSON for this one. */
  readonly aliases?: readonly string[];
  /** OvenMediaEngine tunes its threads or memory by it; here it is checked, kept and shown, and changes nothing. */
  readonly inert?: boolean;
  /** In XML it is as if it were not there when all of its text is variables of the environment that are not set, or empty. */
  readonly ifSet?: boolean;
  /** Shown by the management API also where it was not given. */
  readonly shown?: boolean;
  /** Turns a given value into the kept one; undefined when it cannot. */
  readonly convert?: (given: unknown) => unknown;
  /** Checks what no single property can tell. */
  readonly rule?: Rule;
  /** Fills defaults that depend on other values, after the plain ones. */
  readonly complete?: (resolved: never) => void;
}

/** Reports a fault at a path of keys and indexes below the checked object. */
export type Fail = (path: readonly (string | number)[], message: string) => void;
/** @param value the resolved object, defaults filled */
export type Rule = (value: never, fail: Fail) => void;

type Schema<T> = ReturnType<typeof Type.Unsafe<T>>;

/** Text of at least one character. */
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

/** An integer. Bounds include their ends; no lower one given means 0. */
export function integer(value?: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds = {}) {
  const is = range('an integer', max === Number.MAX_SAFE_INTEGER ? { min } : { min, max });
  return Type.Integer({ is, ...bounds({ min, max }), ...(value === undefined ? {} : { default: value }) });
}

/** A number, not negative unless told. */
export function decimal(value?: number, { min = 0, max = 1e9 }: Bounds = {}) {
  const is = range('a number', max === 1e9 ? { min } : { min, max });
  return Type.Number({ is, ...bounds({ min, max }), ...(value === undefined ? {} : { default: value }) });
}

/** One of some words, taken in any case and kept as spelled here. */
export function choice<const T extends string>(words: readonly T[], value?: T): Schema<T> {
  const convert = (given: unknown): unknown =>
    typeof given === 'string' ? words.find((word) => word.toLowerCase() === given.trim().toLowerCase()) : undefined;
  const is = words.length === 1 ? words[0] : `one of ${words.join(', ')}`;
  return Type.Unsafe<T>({ type: 'string', enum: [...words], is, convert, ...(value ? { default: value } : {}) });
}

/** A text with a syntax of its own, kept as what `parse` makes of it (undefined: it is wrong). */
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

/** A list that must be given. */
export function atLeastOne<T extends ReturnType<typeof repeated>>(list: T): T {
  const { default: _, ...required } = list as T & { default?: unknown };
  return { ...required, minItems: 1 } as unknown as T;
}

/** An element that is there with its defaults when it is not given. */
export function section<T extends TProperties>(properties: T, options: Annotations = {}) {
  return Type.Object(properties, { default: {}, ...options });
}

/** An element that is absent when it is not given. */
export function optional<T extends TProperties>(properties: T, options: Annotations = {}) {
  return Type.Optional(Type.Object(properties, { ...options }));
}

/** Marks an element as one that is taken without effect. Of an optional one, what is inside `Type.Optional`. */
export function inert<T extends TSchema>(schema: T): T {
  return { ...schema, inert: true };
}

/**
 * Marks an element that need not be there as one that a variable of the environment may fill or not. Of an optional one, what
 * is inside `Type.Optional`.
 */
export function ifSet<T extends TSchema>(schema: T): T {
  return { ...schema, ifSet: true };
}

/** An element that other or older servers have a use for: taken, told of once and dropped. */
export function ignored() {
  return Type.Optional(Type.Unsafe<undefined>({ ignored: true }));
}
