import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { coalesced } from '../coalesce.ts';
import { UnavailableError } from '../errors.ts';
import { atMost } from '../running-time.ts';
import type { ClusterEvents, ClusterState, NodeIdentity } from '../types.ts';
import {
  parseChanges,
  parseClaims,
  parseEpoch,
  parseClaimMessage,
  type ClaimChanges,
  type ClaimsReply,
  type TableReply,
  type ClaimMessage,
} from './changes.ts';
import type { ClaimTable } from './claim-table.ts';
import type { RedisConfig } from './config.ts';
import type { Connection } from './connection.ts';
import type { Leases } from './leases/leases.ts';
import type { Beat, Knowledge, Nodes } from './nodes.ts';
import type { Outage } from './outage.ts';
import { SCRIPTS } from './scripts.ts';
import type { Timing } from './timing.ts';

type PullReply = [epoch: string, open: number, claims: ClaimsReply, config: TableReply, configEpoch: string];

export interface HeartbeatOptions {
  readonly connection: Connection;
  readonly timing: Timing;
  readonly events: EventEmitter<ClusterEvents>;
  readonly nodes: Nodes;
  readonly leases: Leases;
  readonly table: ClaimTable;
  readonly config: RedisConfig;
  readonly outage: Outage;
  /** Redis is unreachable, and a lease is about to become invalid. */
  readonly onAtStake: () => void;
  /** Redis does not hear of a node: this one has to ask it whether it lives. */
  readonly onAsk: (node: NodeIdentity) => void;
  /** Redis has every valid lease of this node. */
  readonly onConfirmed: () => void;
  /** The others have marked this node dead; it holds nothing any more. */
  readonly onBuried: () => void;
  /** A beat is over. */
  readonly onBeat: (taken: boolean) => void;
  readonly onFault: (error: Error) => void;
}

/** The connection for messages is checked every so many beats: whatever messages announce, a beat finds, too. */
const PROBE_EVERY = 12;
/** Claims sent in one step: other clients of Redis wait that long. */
const CLAIMS_AT_ONCE = 1000;
/** Published changes that wait for an answer on its way; beyond that all are fetched. */
const MAX_WAITING = 1000;
/** How long Redis has for the pull of one node before the next node asks, where all have missed something. */
const TURN_MS = 0.5;
/** How soon Redis is asked again that has something to restore which no beat has noticed yet. */
const ASK_AGAIN_MS = 100;

/** What happens again and again: this node reports that it is alive, which renews its leases, and learns what has changed. */
export class Heartbeat {
  /** Fetches what has changed in Redis; simultaneous calls share a run. @throws UnavailableError */
  readonly pull = coalesced(() => this.#pullNow());
  /** Beats now; simultaneous calls share a run. Resolves when a beat is over that began after the call. */
  readonly beat = coalesced(() => this.#beatNow());
  readonly #options: HeartbeatOptions;
  #state: ClusterState = 'degraded';
  #draining = false;
  /** Epoch of Redis, and whether it has everything that it should have. */
  #epoch = 0;
  #open = false;
  /** The run of its server that this node reads. */
  #run = '';
  #replaced = false;
  #beats = 0;
  /** In how many milliseconds the time of a node is over that is not heard of until then. */
  #nextSilentMs = Infinity;
  #reported: Knowledge['reported'];
  /** Resolves when everybody may claim. */
  #opening = Promise.withResolvers<void>();
  /** How often the connection was lost. */
  #downs = 0;
  /** How often a beat was wanted at once, and how many of these a beat has followed. */
  #wakes = 0;
  #heard = 0;
  #isPulling = false;
  /** Changes that were published while an answer was on its way. */
  #waiting: ClaimMessage[] = [];
  #turn: NodeJS.Timeout | undefined;
  /** A change of the nodes is still to be announced to their listeners. */
  #nodesChanged = false;
  #closed = false;
  #pause = new AbortController();
  #beating: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#beating = this.#beatAlways();
  }

  get state(): ClusterState {
    return this.#state;
  }

  get draining(): boolean {
    return this.#draining;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Beats at once. */
  wake(): void {
    this.#wakes += 1;
    this.#pause.abort();
  }

  /**
   * Handles a message about claims or configuration. The change of a claim is applied if it is the next one, else the changes are
   * fetched.
   */
  hear(message: string): void {
    const change = parseClaimMessage(message);
    if (change === undefined)
      return message === 'claims' ? this.#pullInTurn() : void this.pull().catch(() => undefined);
    if (this.#isCurrent) return this.#take(change);
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(change);
    else this.#pullInTurn();
  }

  /** The connection is lost. */
  down(reason: string): void {
    this.#downs += 1;
    // another server may not have what this one published
    this.#waiting = [];
    this.#setDegraded(reason);
  }

  /** Resolves when the last beat is over. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#turn);
    this.wake();
    await this.#beating;
    // one that a caller asked for may be under way
    await this.beat();
  }

  async #beatAlways(): Promise<void> {
    // without a connection a beat could only fail
    await this.#rest(this.#options.timing.command);
    while (!this.#closed) {
      this.#pause = new AbortController();
      await this.beat();
      // what a node had that may run only once is free at that moment
      await this.#rest(Math.min(this.#options.timing.beat, this.#nextSilentMs));
    }
  }

  async #rest(forMs: number): Promise<void> {
    await delay(forMs, undefined, { signal: this.#pause.signal }).catch(() => undefined);
  }

  async #beatNow(): Promise<void> {
    if (this.#closed) return;
    const { connection, nodes, config, leases, onAsk, onAtStake, onConfirmed, onBeat, onFault } = this.#options;
    const downs = this.#downs;
    const wakes = this.#wakes;
    let isTaken = false;
    try {
      if (this.#beats++ % PROBE_EVERY === 0) connection.probe();
      const confirm = leases.expectBeat();
      const beat = await nodes.beat({ copy: config.version, highest: leases.highest, reported: this.#reported });
      isTaken = true;
      onBeat(true);
      this.#nodesChanged ||= beat.nodesChanged;
      this.#nextSilentMs = beat.nextSilentMs;
      beat.asks.forEach(onAsk);
      if (beat.buried) this.#rise();
      // before anything that takes longer
      await confirm(beat);
      if (leases.remade > 0) onConfirmed();
      await this.#follow(beat);
      this.#heard = wakes;
      this.#report(beat);
      // the connection may be gone since it was answered
      if (!this.#closed && downs === this.#downs) this.#setConnected();
      this.#catchUp();
    } catch (error) {
      this.#nextSilentMs = Infinity;
      this.#setDegraded((error as Error).message);
      if (!isTaken) onBeat(false);
      onFault(error as Error);
      if (error instanceof UnavailableError && !this.#closed && leases.atStake) onAtStake();
    }
  }

  /** What was this node's is there for everybody: it ends here before it is claimed again. */
  #rise(): void {
    this.#options.leases.loseAll();
    this.#options.onBuried();
    this.wake();
  }

  async #follow(beat: Beat): Promise<void> {
    const { events, config, table } = this.#options;
    // one that is being restored may know an earlier life of this node
    const isReplaced = beat.replaced && beat.recovery === undefined;
    if (isReplaced && !this.#replaced) events.emit('replaced');
    this.#replaced = isReplaced;
    if (beat.wanted) await config.offer(beat.epoch);
    const moved =
      beat.epoch !== this.#epoch ||
      beat.open !== this.#open ||
      this.#state === 'degraded' ||
      beat.claimsRevision !== table.revision ||
      beat.configRevision !== config.seen;
    // where Redis does not say which run it is, any connection may lead to another one
    if (beat.run !== this.#run || (beat.run === '' && this.#state === 'degraded')) table.forget();
    this.#run = beat.run;
    if (moved) await this.pull();
    this.#followDrain();
    if (this.#nodesChanged) events.emit('nodes');
    this.#nodesChanged = false;
  }

  /** While Redis is being restored the others wait for what this node has: the next beat says at once that it is there. */
  #report({ recovery, replaced }: Beat): void {
    const before = this.#reported;
    const state = replaced ? 0 : this.#options.leases.remade;
    this.#reported = recovery === undefined ? undefined : { recovery, state };
    if (recovery !== undefined && (before?.recovery !== recovery || before.state !== state)) this.wake();
  }

  #followDrain(): void {
    const { draining } = this.#options.nodes;
    if (draining === this.#draining) return;
    this.#draining = draining;
    this.#options.events.emit('drain', draining);
  }

  /** Whether nothing is on its way: an answer may be older than a message, and earlier changes of nodes come with a beat. */
  get #isCurrent(): boolean {
    return this.#state === 'connected' && !this.#isPulling && this.#wakes === this.#heard;
  }

  #take({ before, changes }: ClaimMessage): void {
    const { table } = this.#options;
    if (before > 0 && before === table.revision) table.apply(changes, this.#open);
    // a beat finds what a pull that fails has missed, and a Redis that has gone back behind what is known
    else if (changes.revision > table.revision) this.#pullInTurn();
  }

  /** Applies the changes that waited for an answer on its way. */
  #catchUp(): void {
    while (this.#isCurrent) {
      const change = this.#waiting.shift();
      if (change === undefined) return;
      this.#take(change);
    }
  }

  /** Nodes that have missed the same message do not all ask at once. A caller that waits for an answer pulls without delay. */
  #pullInTurn(): void {
    if (this.#closed) return;
    this.#turn ??= setTimeout(() => this.pull().catch(() => undefined), Math.round(this.#options.nodes.rank * TURN_MS));
  }

  async #pullNow(): Promise<void> {
    const { table } = this.#options;
    clearTimeout(this.#turn);
    this.#turn = undefined;
    let since = table.revision;
    let cursor = '0';
    this.#isPulling = true;
    try {
      do ({ revision: since, cursor } = await this.#pullPart(since, cursor));
      while (cursor !== '');
    } finally {
      this.#isPulling = false;
      this.#catchUp();
    }
  }

  async #pullPart(claimsSince: number, cursor: string): Promise<ClaimChanges> {
    const { connection, config, table, leases } = this.#options;
    const known = [this.#epoch, claimsSince, config.since, leases.highest, config.version.epoch];
    const reply = await connection.run(SCRIPTS.pull, [...known, cursor, CLAIMS_AT_ONCE]);
    const [id, open, claims, entries, configEpoch] = reply as PullReply;
    const isEmptied = this.#epoch !== 0 && this.#epoch !== Number(id);
    this.#epoch = Number(id);
    leases.see(this.#epoch);
    if (isEmptied) this.#options.events.emit('emptied');
    if (this.#open && open === 0) this.#opening = Promise.withResolvers();
    this.#open = open === 1;
    const changes = parseClaims(claims);
    table.apply(changes, this.#open);
    if (this.#open) {
      config.apply(parseEpoch(configEpoch, this.#epoch), parseChanges(entries));
      this.#opening.resolve();
    }
    return changes;
  }

  /** Resolves when Redis has been restored, and after a while in any case. */
  opened(): Promise<void> {
    if (this.#open) return delay(ASK_AGAIN_MS);
    return atMost(this.#options.timing.beat, this.#opening.promise);
  }

  #setDegraded(reason: string): void {
    const { outage, connection } = this.#options;
    // that the connection ends with the node is not reported
    if (!this.#closed) outage.begin(reason, connection.answeredAt);
    this.#setState('degraded');
  }

  #setConnected(): void {
    this.#options.outage.end();
    this.#setState('connected');
  }

  #setState(state: ClusterState): void {
    // that the connection ends with the node is not reported
    if (state === this.#state || this.#closed) return;
    this.#state = state;
    this.#options.events.emit('state', state);
  }
}
