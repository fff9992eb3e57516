/**
 * What tests of one file share: made when the first of them asks for it, the same for all. A promise that fails does so for each
 * test that waits for it.
 */
export function shared<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
