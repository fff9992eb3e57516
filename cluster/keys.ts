/** A key of the store from names, whatever characters they have; `join('a/b', 'c')` differs from `join('a', 'b/c')`. */
export function joinKey(...names: readonly string[]): string {
  return names.map(encodeURIComponent).join('/');
}

/** The names of a key. */
export function splitKey(key: string): string[] {
  return key.split('/').map(decodeURIComponent);
}

/** True when `key` is `path` or lies below it. */
export function isWithin(key: string, path: string): boolean {
  return key === path || key.startsWith(`${path}/`);
}

/** True when `key` lies at or below `path`; everything does below ''. */
export function isBelow(key: string, path: string): boolean {
  return path === '' || isWithin(key, path);
}
