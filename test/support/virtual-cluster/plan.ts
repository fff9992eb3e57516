import { Random } from '../../soak/random.ts';

/** What happens, and which numbers it takes: which node, key or lease, for how long. */
interface Kind {
  /** How often, compared with others. */
  readonly weight: number;
  /** A run has such faults, or it has none of them; what is not a fault is in each run. */
  readonly fault?: string;
}

/** Whatever a run may do. */
const KINDS = {
  claim: { weight: 40 },
  take: { weight: 3 },
  release: { weight: 8 },
  update: { weight: 3 },
  keep: { weight: 3 },
  start: { weight: 6 },
  leave: { weight: 1 },
  /** A process stands still. */
  stall: { weight: 4, fault: 'stalls' },
  kill: { weight: 4, fault: 'deaths' },
  /** A host loses its power. */
  powerOff: { weight: 2, fault: 'deaths' },
  cutFromRedis: { weight: 4, fault: 'cuts' },
  darkToRedis: { weight: 4, fault: 'cuts' },
  cutFromPeer: { weight: 3, fault: 'cuts' },
  darkToPeer: { weight: 3, fault: 'cuts' },
  refusedByPeer: { weight: 3, fault: 'cuts' },
  /** All connections to Redis end. */
  resetRedis: { weight: 3, fault: 'cuts' },
  /** All nodes lose Redis at once, and have it again one after the other: the first one last. */
  allFromRedis: { weight: 2, fault: 'cuts' },
  stallRedis: { weight: 3, fault: 'redis stalls' },
  /** Redis dies and comes back with all that it had. */
  restartRedis: { weight: 3, fault: 'redis deaths' },
  emptyRedis: { weight: 3, fault: 'losses' },
  flushRedis: { weight: 3, fault: 'losses' },
  /** A dump is made, to which Redis, or a replica that takes its place, goes back. */
  dumpRedis: { weight: 4, fault: 'losses' },
  restoreRedis: { weight: 4, fault: 'losses' },
  failOver: { weight: 4, fault: 'losses' },
  /** A server that follows another for a moment loses what that one does not have; its run is the same. */
  rollBack: { weight: 4, fault: 'losses' },
  deleteKey: { weight: 5, fault: 'losses' },
  /** A single entry of a set is gone. */
  deleteEntry: { weight: 3, fault: 'losses' },
  /** The clock of Redis is set. */
  jump: { weight: 4, fault: 'jumps' },
} as const satisfies Readonly<Record<string, Kind>>;

export type ActionKind = keyof typeof KINDS;

/** Numbers choose among what there is when it happens. */
export interface Action {
  /** In milliseconds since the begin. */
  readonly at: number;
  readonly kind: ActionKind;
  readonly node: number;
  readonly other: number;
  readonly ms: number;
}

/** All that a run does; the same for the same seed. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  readonly keys: number;
  readonly actions: readonly Action[];
}

const FIRST_MS = 1200;
const LONGEST_PAUSE_MS = 450;
const LONGEST_FAULT_MS = 4500;

export function planOf(seed: number): Plan {
  const random = new Random(seed);
  const faults = new Set(Object.values(KINDS).flatMap((kind: Kind) => kind.fault ?? []));
  const chosen = new Set([...faults].filter(() => random.chance(0.5)));
  // a fence is later than those that are lost by the clock, too: by one that was set back it may not be
  if (chosen.has('losses')) chosen.delete('jumps');
  // a clock that is set forward while a holder is cut off, or suspended, ends its lease for others before it ends for itself
  if (chosen.has('jumps')) for (const silence of ['cuts', 'stalls']) chosen.delete(silence);
  const kinds = (Object.entries(KINDS) as [ActionKind, Kind][]).filter(
    ([, { fault }]) => fault === undefined || chosen.has(fault),
  );
  const lots = kinds.flatMap(([kind, { weight }]) => Array.from({ length: weight }, () => kind));
  let at = FIRST_MS;
  const actions = Array.from({ length: 15 + random.below(30) }, (): Action => {
    at += random.below(LONGEST_PAUSE_MS);
    const kind = random.pick(lots);
    // much happens soon after something else, some of it much later
    const ms = Math.round(LONGEST_FAULT_MS * (random.below(1000) / 1000) ** 2);
    return { at, kind, node: random.below(100), other: random.below(100), ms };
  });
  return { seed, nodes: 2 + random.below(3), keys: 2 + random.below(3), actions };
}
