import { randomBytes } from 'node:crypto';
import type { NodeIdentity } from './types.ts';

/** A new incarnation of a node. */
export function incarnate(id: string): NodeIdentity {
  return { id, incarnation: randomBytes(8).toString('hex') };
}

/** A unique name for one claim. */
export function newToken(): string {
  return randomBytes(12).toString('hex');
}
