import type { Fail } from './blocks.ts';

/** Reports items of a list that have the same text, or number, under `key`. */
export function unique<K extends string>(
  items: readonly Readonly<Record<K, string | number>>[],
  key: K,
  path: readonly string[],
  fail: Fail,
): void {
  const seen = new Set<string | number>();
  items.forEach((item, index) => {
    if (seen.has(item[key])) fail([...path, index, key], `"${item[key]}" is given twice`);
    seen.add(item[key]);
  });
}
