import { randomBytes } from 'node:crypto';
import type { NodeIdentity } from './types.ts';

/** A new life of a node. */
export function incarnate(id: string): NodeIdentity {
  return { id, incarnation: randomBytes(8).toString('hex') };
}

/** What nobody else has: names one claim. */
export function newToken(): string {
  return randomBytes(12).toString('hex');
}
