import { randomBytes } from 'node:crypto';
import type { NodeIdentity } from './types.ts';

/** A new incarnation of a node. */
export function incarnate(id: string): NodeIdentity {
  return { id, incarnation: randomBytes(8).toString('hex') };
}

/** Tests for the same run of the same node: an incarnation is unique. False when there is none. */
export function isSameIncarnation(one: NodeIdentity | undefined, other: NodeIdentity | undefined): boolean {
  return one !== undefined && one.incarnation === other?.incarnation;
}

/** A unique name for one claim. */
export function newToken(): string {
  return randomBytes(12).toString('hex');
}
