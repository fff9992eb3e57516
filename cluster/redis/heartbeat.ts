import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { coalesced } from '../coalesce.ts';
import { UnavailableError } from '../errors.ts';
import type { ClusterEvents, ClusterState, NodeIdentity } from '../types.ts';
import type { RedisConfig } from './config.ts';
import type { Connection } from './connection.ts';
import type { Leases } from './leases/leases.ts';
import type { Renewal } from './leases/renewal.ts';
import { NodeEvents } from './node-events.ts';
import type { Beat, Knowledge, Nodes } from './nodes.ts';
import type { Outage } from './outage.ts';
import type { StoreSync } from './store-sync.ts';
import type { Timing } from './timing.ts';

/** Relation of a node to Redis. The first phase is degraded; `after` has all transitions. */
type Phase =
  /** No beat was answered yet, the last one failed, or the connection has ended since. */
  | { readonly kind: 'degraded' }
  /** `nextSilentMs`: milliseconds until the time to live of the next node is over, unless it beats until then. */
  | { readonly kind: 'connected'; readonly nextSilentMs: number }
  /** This node beats no more. It keeps its last state: that the connection ends with the node is not reported. */
  | { readonly kind: 'closed'; readonly state: ClusterState };

type Transition =
  | { readonly event: 'handled'; readonly begunIn: Phase; readonly nextSilentMs: number }
  /** `failed`: a beat, or the connection. */
  | { readonly event: 'failed' | 'closed' };

function after(phase: Phase, transition: Transition): Phase {
  if (phase.kind === 'closed') return phase;
  switch (transition.event) {
    case 'handled':
      // another phase than at its beginning: the connection has ended since the beat was answered
      return phase === transition.begunIn ? { kind: 'connected', nextSilentMs: transition.nextSilentMs } : phase;
    case 'failed':
      return { kind: 'degraded' };
    case 'closed':
      return { kind: 'closed', state: phase.kind };
  }
}

export interface HeartbeatOptions {
  readonly connection: Connection;
  readonly timing: Timing;
  readonly events: EventEmitter<ClusterEvents>;
  readonly nodes: Nodes;
  readonly leases: Leases;
  readonly renewal: Renewal;
  readonly config: RedisConfig;
  readonly sync: StoreSync;
  readonly outage: Outage;
  /** Redis is unreachable, and a lease is about to become invalid. */
  readonly onAtStake: () => void;
  /** This node has to ask another one, of which Redis does not hear, whether it lives. */
  readonly onAsk: (node: NodeIdentity) => void;
  /** Redis has every valid lease of this node. */
  readonly onConfirmed: () => void;
  /** The others have marked this node dead; it holds nothing any more. */
  readonly onMarkedDead: () => void;
  /** A beat is over. */
  readonly onBeat: (taken: boolean) => void;
  readonly onFault: (error: Error) => void;
}

/** Beats after which the connection for messages is checked: whatever messages announce, a beat finds, too. */
const PROBE_EVERY = 12;

/** Reports again and again that this node is alive, which renews its leases, and follows the answers. */
export class Heartbeat {
  /** Beats now; simultaneous calls share a run. Resolves when a beat is over that began after the call. */
  readonly beat = coalesced(() => this.#beatNow());
  readonly #options: HeartbeatOptions;
  readonly #nodeEvents: NodeEvents;
  #phase: Phase = { kind: 'degraded' };
  /** A beat is to begin at once. */
  #isDue = false;
  #pause = new AbortController();
  #beats = 0;
  #reported: Knowledge['reported'];

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#nodeEvents = new NodeEvents(options.events, options.nodes);
  }

  start(): void {
    void this.#beatAlways();
  }

  get state(): ClusterState {
    return this.#phase.kind === 'closed' ? this.#phase.state : this.#phase.kind;
  }

  get draining(): boolean {
    return this.#nodeEvents.isDraining;
  }

  /** Beats at once. */
  wake(): void {
    this.#isDue = true;
    this.#options.sync.awaitBeat();
    this.#pause.abort();
  }

  /** The connection is lost. */
  down(reason: string): void {
    this.#options.sync.disconnected();
    this.#degrade(reason);
  }

  /** Resolves when the last beat is over. */
  async close(): Promise<void> {
    this.#enter({ event: 'closed' });
    this.#options.sync.close();
    this.wake();
    // one may be under way
    await this.beat();
  }

  get #isClosed(): boolean {
    return this.#phase.kind === 'closed';
  }

  async #beatAlways(): Promise<void> {
    const { timing } = this.#options;
    // without a connection a beat could only fail
    await this.#rest(timing.command);
    while (!this.#isClosed) {
      await this.beat();
      // what a silent node had that may run only once is free at that moment
      const nextSilentMs = this.#phase.kind === 'connected' ? this.#phase.nextSilentMs : Infinity;
      await this.#rest(Math.min(timing.beat, nextSilentMs));
    }
  }

  async #rest(forMs: number): Promise<void> {
    if (this.#isDue) return;
    this.#pause = new AbortController();
    // it rejects only when it is aborted
    await delay(forMs, undefined, { signal: this.#pause.signal }).catch(() => undefined);
  }

  async #beatNow(): Promise<void> {
    if (this.#isClosed) return;
    const { connection, nodes, config, leases, renewal, sync, onAsk, onAtStake, onConfirmed, onBeat, onFault } =
      this.#options;
    const begunIn = this.#phase;
    this.#isDue = false;
    let isAnswered = false;
    try {
      if (this.#beats++ % PROBE_EVERY === 0) connection.probe();
      const renew = renewal.expectBeat();
      const beat = await nodes.beat({ copy: config.version, highest: leases.highest, reported: this.#reported });
      isAnswered = true;
      onBeat(true);
      this.#nodeEvents.note(beat);
      beat.asks.forEach(onAsk);
      if (beat.markedDead) this.#loseAll();
      // before anything that takes longer
      await renew(beat);
      if (renewal.restored > 0) onConfirmed();
      await this.#follow(beat);
      this.#report(beat);
      this.#enter({ event: 'handled', begunIn, nextSilentMs: beat.nextSilentMs });
      if (this.#phase.kind === 'connected' && !this.#isDue) sync.followed();
    } catch (error) {
      this.#degrade((error as Error).message);
      if (!isAnswered) onBeat(false);
      onFault(error as Error);
      if (error instanceof UnavailableError && !this.#isClosed && leases.atStake) onAtStake();
    }
  }

  /** All that this node held is free: it ends here before it is claimed again. */
  #loseAll(): void {
    this.#options.leases.loseAll();
    this.#options.onMarkedDead();
    this.wake();
  }

  async #follow(beat: Beat): Promise<void> {
    const { config, sync } = this.#options;
    this.#nodeEvents.announceReplacement(beat);
    if (beat.wanted) await config.offer(beat.epoch);
    await sync.follow(beat, { mayHaveMissed: this.state === 'degraded' });
    this.#nodeEvents.announceNodes();
  }

  /** While Redis is being restored the others wait for the claims of this node: it reports at once that they are there. */
  #report({ recovery, replaced }: Beat): void {
    const before = this.#reported;
    const state = replaced ? 0 : this.#options.renewal.restored;
    this.#reported = recovery === undefined ? undefined : { recovery, state };
    if (recovery !== undefined && (before?.recovery !== recovery || before.state !== state)) this.wake();
  }

  #degrade(reason: string): void {
    const { outage, connection, sync } = this.#options;
    if (this.#isClosed) return;
    outage.begin(reason, connection.answeredAt);
    sync.awaitBeat();
    this.#enter({ event: 'failed' });
  }

  #enter(transition: Transition): void {
    const before = this.state;
    this.#phase = after(this.#phase, transition);
    if (this.#phase.kind === 'connected') this.#options.outage.end();
    if (this.state !== before) this.#options.events.emit('state', this.state);
  }
}
