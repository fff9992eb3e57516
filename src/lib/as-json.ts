import type { Json } from '#cluster';

/** Checks that JSON carries a type: the type itself, unless it has functions, symbols or bigints in it. */
type Carried<T> = unknown extends T
  ? T
  : T extends Json | undefined
    ? T
    : T extends bigint | symbol | ((...args: never) => unknown)
      ? never
      : { [K in keyof T]: Carried<T[K]> };

/** Types a value as JSON for the cluster: its undefined properties are lost. */
export function asJson<T>(value: T & Carried<T>): Json {
  return value as unknown as Json;
}
