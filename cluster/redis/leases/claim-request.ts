import { UnavailableError } from '../../errors.ts';
import type { ClaimOptions, Json, NodeIdentity, Owner } from '../../types.ts';
import type { Connection } from '../connection.ts';
import { parseClaim } from '../record.ts';
import { SCRIPTS } from '../scripts.ts';
import type { Timing } from '../timing.ts';

/** A claim as it is sent to Redis. */
export interface ClaimRequest {
  readonly key: string;
  readonly token: string;
  readonly meta: Json;
  readonly options: ClaimOptions;
  /** The claim was this node's before, and Redis may have lost it; `valid` if no other node can have claimed the key since. */
  readonly before: 'none' | 'valid' | 'lapsed';
  /** Value that such a claim has kept or inherited. */
  readonly kept?: Json | undefined;
}

interface Granted {
  readonly fence: number;
  readonly inherited: Json | undefined;
  /** The claim that it took the key from. */
  readonly taken: FormerClaim | undefined;
}

/** A claim whose key was taken. */
export interface FormerClaim {
  readonly token: string;
  /** Time for which its holder may continue without knowing it, in milliseconds. */
  readonly leftMs: number;
}

/** undefined while only previous owners may claim. */
export type ClaimAnswer = { readonly owner: Owner } | Granted | undefined;

/** A node that claims, and its connection to Redis. */
export interface Claimant {
  readonly self: NodeIdentity;
  readonly connection: Connection;
  readonly timing: Timing;
}

/**
 * @param floor the new fence has to be greater than this one
 * @throws UnavailableError
 */
export async function requestClaim(
  { self, connection, timing }: Claimant,
  { key, token, meta, options, before, kept }: ClaimRequest,
  floor: number,
): Promise<ClaimAnswer> {
  const [outcome, value = '', inherited, from, left] = (await connection.run(SCRIPTS.claim, [
    key,
    token,
    encodeURIComponent(self.id),
    self.incarnation,
    JSON.stringify(meta),
    timing.ttl,
    floor,
    options.keepMs ?? 0,
    before === 'none' ? takenFrom(options.take) : 0,
    before,
    timing.grace - timing.ttl,
    kept === undefined ? '' : JSON.stringify(kept),
    options.silence,
  ])) as string[];
  if (outcome === 'wait') return undefined;
  if (outcome === 'owner') {
    const record = parseClaim(value);
    if (record === undefined) throw new UnavailableError(`Redis: the claim of ${key} is malformed`);
    return { owner: record.owner };
  }
  return {
    fence: Number(value),
    inherited: inherited ? (JSON.parse(inherited) as Json) : undefined,
    taken: from === undefined ? undefined : { token: from, leftMs: Number(left) },
  };
}

/** Encodes `take` for the script: 0 from no owner, 1 from any owner, or the fence of the only owner to take the key from. */
function takenFrom(take: ClaimOptions['take'] = false): number {
  return typeof take === 'object' ? take.fence : Number(take);
}
