import type { Json } from '#cluster';

/** What JSON carries of a type: the type itself, unless it has functions, symbols or bigints in it. */
type Carried<T> = unknown extends T
  ? T
  : T extends Json | undefined
    ? T
    : T extends bigint | symbol | ((...args: never) => unknown)
      ? never
      : { [K in keyof T]: Carried<T[K]> };

/** A value of a type of its own as JSON that the cluster carries: properties that are undefined are not in it. */
export function asJson<T>(value: T & Carried<T>): Json {
  return value as unknown as Json;
}
