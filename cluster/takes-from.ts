import type { ClaimOptions, Owner } from './types.ts';

/** Whether a claim with the option takes a key from its owner. */
export function takesFrom(take: ClaimOptions['take'], { fence }: Pick<Owner, 'fence'>): boolean {
  return typeof take === 'object' ? take.fence === fence : take === true;
}
