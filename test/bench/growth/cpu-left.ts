import { number } from '../measurement.ts';

/** Percent of a core from which on a single thread has nothing left, and of the machine below which it has not. */
const FULL = 90;
const LEAST_IDLE = 5;

/** What a window left of the machine. */
export interface CpuUse {
  /** Percent of all cores together that nothing used. */
  readonly idle: number;
  /** Single threads that all depends on, in percent of a core. */
  readonly threads: Readonly<Record<string, number>>;
}

/** @returns why what was measured meanwhile says nothing of the server; undefined where there was CPU left for all */
export function exhausted({ idle, threads }: CpuUse): string | undefined {
  const full = Object.entries(threads).find(([, percent]) => percent >= FULL);
  if (full !== undefined) return `${full[0]} took ${number(full[1])} % of a core`;
  return idle < LEAST_IDLE ? `${number(idle)} % of the machine was idle` : undefined;
}
