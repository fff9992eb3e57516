import type { Timebase } from '../../core/timebase.ts';

/** Converts a time to another timebase, rounded down and exact, as both ends of a NUT must. */
export function rescaleDown(value: number, from: Timebase, to: Timebase): number {
  const multiply = from.num * to.den;
  const divide = from.den * to.num;
  if (multiply === divide) return value;
  const whole = Math.floor(value / divide);
  const rest = (value - whole * divide) * multiply;
  if (Number.isSafeInteger(rest)) return whole * multiply + Math.floor(rest / divide);
  return Number((BigInt(value) * BigInt(multiply)) / BigInt(divide));
}
