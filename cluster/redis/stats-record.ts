import type { StatsRow, StatsSum, Values } from '../types.ts';
import { pairs, parseId } from './record.ts';

/**
 * @param hash as lua/prelude.lua describes it
 * @param node the one that asks, as keys name it, with its incarnation and what it has reported by then
 * @returns undefined when no node has the row
 */
export function parseSum(
  hash: readonly string[],
  node: string,
  incarnation: string,
  reported: StatsRow | undefined,
): StatsSum | undefined {
  if (hash.length === 0) return undefined;
  const byKind: Record<string, Record<string, number>> = { c: {}, s: {}, m: {}, t: {}, l: {} };
  const ownGauges: Record<string, number> = {};
  const own = `g:${node}:`;
  const others: string[] = [];
  let isIncluded = false;
  for (const [field, text] of pairs(hash)) {
    const kind = byKind[field.slice(0, field.indexOf(':'))];
    if (kind !== undefined) kind[field.slice(2)] = Number(text);
    else if (field.startsWith(own)) ownGauges[field.slice(own.length)] = Number(text);
    else if (field === `i:${node}`) isIncluded = text === incarnation;
    else if (field.startsWith('o:') && field !== `o:${node}`) others.push(field.slice(2));
  }
  const { c = {}, s = {}, m = {}, t = {}, l = {} } = byKind;
  return {
    counters: c,
    gauges: notZero(s),
    maxima: m,
    maximaTimes: t,
    latest: l,
    own: { counters: (isIncluded ? reported?.counters : undefined) ?? {}, gauges: ownGauges },
    others: others.flatMap((id) => parseId(id) ?? []),
  };
}

function notZero(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== 0));
}
