import type { Values } from './types.ts';

/**
 * Growth of counters. A counter that fell has begun anew: another object has the name.
 * @param before undefined when they are new
 */
export function growth(now: Values, before: Values = {}): Values {
  const grown = Object.entries(now).map(([name, value]) => {
    const last = before[name] ?? 0;
    return [name, value < last ? value : value - last];
  });
  return Object.fromEntries(grown);
}

/** The values of both; `of` decides where both have one. */
export function combined(a: Values, b: Values, of: (x: number, y: number) => number): Values {
  const result: Record<string, number> = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const other = result[name];
    result[name] = other === undefined ? value : of(other, value);
  }
  return result;
}

export function sum(a: number, b: number): number {
  return a + b;
}

/** True when both have the same values under the same names. */
export function sameValues(a: Values, b: Values): boolean {
  let names = 0;
  for (const name in a) {
    if (a[name] !== b[name]) return false;
    names++;
  }
  for (const _ in b) names--;
  return names === 0;
}
