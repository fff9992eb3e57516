import { number, type Line } from '../measurement.ts';
import { exhausted, type CpuUse } from './cpu-left.ts';

/** How much more a unit may cost among many than among few. */
const FLAT = 1.15;

/** A load of some size. CPU in percent of a core, delays in milliseconds. */
export interface Size {
  readonly count: number;
  /** Of the server and its children, without what it takes at rest. */
  readonly cpu: number;
  /** Of its event loop, and of that at rest. */
  readonly loop: number;
  readonly loopAtRest: number;
  readonly p50: number;
  readonly p99: number;
  readonly use: CpuUse;
}

/**
 * A line for each size, from few to many: what a unit costs, and what of it it cost at the size before. The first size carries what
 * all of them share, so the second one is not held against it where it is one unit. A size that left no CPU is told as such.
 * @param unit as in: stream
 */
export function costLines(what: string, unit: string, sizes: readonly Size[]): Line[] {
  return sizes.map((size, i) => {
    const text = `${what}: CPU per ${unit}, ${number(size.count)}`;
    const left = `${number(size.use.idle)} % of the machine idle`;
    const why = exhausted(size.use);
    if (why !== undefined) return { what: text, measured: `no figure: no CPU was left`, reference: why };
    const cost = size.cpu / size.count;
    const measured = `${number(cost, 3)} %; delay p50 ${number(size.p50, 1)}, p99 ${number(size.p99, 1)} ms`;
    const before = sizes[i - 1];
    if (before === undefined || exhausted(before.use) !== undefined) return { what: text, measured, reference: left };
    const ratio = (cost * before.count) / before.cpu;
    const reference = `${number(ratio, 2)} of that with ${number(before.count)}; ${left}`;
    if (before.count === 1) return { what: text, measured, reference };
    return { what: text, measured, reference, budget: `<= ${number(FLAT, 2)} of that`, met: ratio <= FLAT };
  });
}

/** A line with how many units fill one event loop, by the largest size that left some CPU; one unit is too little to tell. */
export function extrapolation(what: string, unit: string, sizes: readonly Size[]): Line {
  const largest = sizes.findLast(({ count, use }) => count > 1 && exhausted(use) === undefined);
  const name = `${what}: ${unit}s that fill one event loop, extrapolated`;
  if (largest === undefined) return { what: name, measured: 'no figure: no size left any CPU' };
  const { count, loop, loopAtRest } = largest;
  const full = ((100 - loopAtRest) * count) / (loop - loopAtRest);
  return {
    what: name,
    measured: `about ${number(Number(full.toPrecision(2)))}`,
    reference: `${number(loop)} % of it with ${number(count)}`,
  };
}
