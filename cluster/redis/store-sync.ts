import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { coalesced } from '../coalesce.ts';
import { UnavailableError } from '../errors.ts';
import { atMost } from '../running-time.ts';
import type { ClusterEvents } from '../types.ts';
import { ChangeQueue } from './change-queue.ts';
import {
  parseChanges,
  parseClaimMessage,
  parseClaims,
  parseEpoch,
  type ClaimChanges,
  type ClaimMessage,
  type ClaimsReply,
  type TableReply,
} from './changes.ts';
import type { ClaimTable } from './claim-table.ts';
import type { RedisConfig } from './config.ts';
import type { Connection } from './connection.ts';
import type { Leases } from './leases/leases.ts';
import type { Beat, Nodes } from './nodes.ts';
import { SCRIPTS } from './scripts.ts';
import type { Timing } from './timing.ts';

type PullReply = [epoch: string, open: number, claims: ClaimsReply, config: TableReply, configEpoch: string];

export interface StoreSyncOptions {
  readonly connection: Connection;
  readonly timing: Timing;
  readonly events: EventEmitter<ClusterEvents>;
  readonly nodes: Pick<Nodes, 'rank'>;
  readonly leases: Pick<Leases, 'highest' | 'see'>;
  readonly table: ClaimTable;
  readonly config: RedisConfig;
  readonly onFault: (error: Error) => void;
}

/** Claims sent in one step: other clients of Redis wait that long. */
const CLAIMS_AT_ONCE = 1000;
/** Time of Redis for the pull of one node, where all have missed the same change. */
const TURN_MS = 0.5;
/** Delay before Redis is asked again whose losses no beat has noticed yet. */
const ASK_AGAIN_MS = 100;

/** Keeps claims and configuration as Redis has them: applies published changes, and fetches (*pulls*) those that were missed. */
export class StoreSync {
  /** Fetches what has changed in Redis; simultaneous calls share a run. @throws UnavailableError */
  readonly pull = coalesced(() => this.#pullNow());
  readonly #options: StoreSyncOptions;
  readonly #published = new ChangeQueue((change) => this.#apply(change));
  #epoch = 0;
  /** Run of the Redis server that was read last. */
  #run = '';
  /** Resolves when every node may claim; undefined when they may. */
  #opening: PromiseWithResolvers<void> | undefined = Promise.withResolvers();
  /** Timer of the next pull that no caller waits for. */
  #turn: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: StoreSyncOptions) {
    this.#options = options;
  }

  /** Id of the present state of Redis: another one when it has lost its content. 0 before it is known. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Handles a message about claims or configuration. A claim that follows the known ones is applied, else changes are fetched. */
  hear(message: string): void {
    const change = parseClaimMessage(message);
    if (change === undefined && message !== 'claims') void this.refresh();
    else if (change === undefined || !this.#published.add(change)) this.#pullInTurn();
  }

  /** Pulls, for a caller that can do with what is known: an unreachable Redis is reported by the next beat, which pulls again. */
  async refresh(): Promise<void> {
    try {
      await this.pull();
    } catch (error) {
      if (!(error instanceof UnavailableError)) this.#options.onFault(error as Error);
    }
  }

  /** Queues published changes until `followed`: nodes that they name may be unknown before the next beat. */
  awaitBeat(): void {
    this.#published.awaitAnswer('beat');
  }

  /** A beat was handled, and no other one is due. */
  followed(): void {
    this.#published.resume('beat');
  }

  /** The connection is lost: another server may not have what this one published. */
  disconnected(): void {
    this.#published.clear();
  }

  /**
   * Pulls if Redis has something that this node lacks.
   * @param mayHaveMissed this node was degraded: a message may have been lost
   * @throws UnavailableError
   */
  async follow(beat: Beat, { mayHaveMissed }: { readonly mayHaveMissed: boolean }): Promise<void> {
    const { table, config } = this.#options;
    const isCurrent =
      !mayHaveMissed &&
      beat.epoch === this.#epoch &&
      beat.open === this.#isOpen &&
      beat.claimsRevision === table.revision &&
      beat.configRevision === config.seen;
    // where Redis does not say which run it is, any connection may lead to another one
    if (beat.run !== this.#run || (beat.run === '' && mayHaveMissed)) table.forget();
    this.#run = beat.run;
    if (!isCurrent) await this.pull();
  }

  /** Resolves when Redis has been restored, and after a while in any case. */
  opened(): Promise<void> {
    if (this.#opening === undefined) return delay(ASK_AGAIN_MS);
    return atMost(this.#options.timing.beat, this.#opening.promise);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#turn);
  }

  get #isOpen(): boolean {
    return this.#opening === undefined;
  }

  #apply({ before, changes }: ClaimMessage): void {
    const { table } = this.#options;
    if (before > 0 && before === table.revision) table.apply(changes, this.#isOpen);
    // a beat finds what a pull that fails has missed, and a Redis that has gone back behind what is known
    else if (changes.revision > table.revision) this.#pullInTurn();
  }

  /** Nodes that have missed the same message do not all ask at once. A caller that waits for an answer pulls without delay. */
  #pullInTurn(): void {
    if (this.#closed) return;
    this.#turn ??= setTimeout(() => void this.refresh(), Math.round(this.#options.nodes.rank * TURN_MS));
  }

  async #pullNow(): Promise<void> {
    clearTimeout(this.#turn);
    this.#turn = undefined;
    let since = this.#options.table.revision;
    let cursor = '0';
    this.#published.awaitAnswer('pull');
    try {
      do ({ revision: since, cursor } = await this.#pullPart(since, cursor));
      while (cursor !== '');
    } finally {
      this.#published.resume('pull');
    }
  }

  async #pullPart(claimsSince: number, cursor: string): Promise<ClaimChanges> {
    const { connection, config, table, leases, events } = this.#options;
    const known = [this.#epoch, claimsSince, config.since, leases.highest, config.version.epoch];
    const reply = await connection.run(SCRIPTS.pull, [...known, cursor, CLAIMS_AT_ONCE]);
    const [id, open, claims, entries, configEpoch] = reply as PullReply;
    const isEmptied = this.#epoch !== 0 && this.#epoch !== Number(id);
    this.#epoch = Number(id);
    leases.see(this.#epoch);
    if (isEmptied) events.emit('emptied');
    const changes = parseClaims(claims);
    if (open === 1) {
      const opening = this.#opening;
      this.#opening = undefined;
      table.apply(changes, true);
      config.apply(parseEpoch(configEpoch, this.#epoch), parseChanges(entries));
      opening?.resolve();
    } else {
      this.#opening ??= Promise.withResolvers();
      table.apply(changes, false);
    }
    return changes;
  }
}
