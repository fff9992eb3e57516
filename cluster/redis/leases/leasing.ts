import { AbandonedClaims } from './abandoned-claims.ts';
import { Claims, type ClaimsOptions } from './claims.ts';
import { HandOver } from './handover.ts';
import { LeaseWriter } from './lease-writer.ts';
import { Leases } from './leases.ts';
import { Renewal } from './renewal.ts';

/** The leases of a node, and the parts that take, renew and hand them over. */
export interface Leasing {
  readonly leases: Leases;
  readonly claims: Claims;
  readonly renewal: Renewal;
  readonly handOver: HandOver;
}

export function createLeasing(
  options: Pick<ClaimsOptions, 'self' | 'connection' | 'timing' | 'latest' | 'promisedUntil'>,
): Leasing {
  const abandoned = new AbandonedClaims(options.connection, options.timing.ttl);
  const leases = new Leases({ ...options, abandoned });
  const parts = { ...options, leases, abandoned };
  const writer = new LeaseWriter({ ...parts, restore: (lease) => claims.restore(lease) });
  const handOver = new HandOver(parts);
  const claims: Claims = new Claims({ ...parts, handOver, keeper: writer });
  const renewal = new Renewal({ ...parts, claims, writer });
  return { leases, claims, renewal, handOver };
}
