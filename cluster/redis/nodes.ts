import type { Rejections } from '../rejections.ts';
import { NoNodeError } from '../errors.ts';
import type { NodeDescription, NodeIdentity, NodeRow, NodeState } from '../types.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { Connection } from './connection.ts';
import type { KnownPeers } from './known-peers.ts';
import { parseId } from './record.ts';
import type { Signatures } from './signatures.ts';
import { SCRIPTS } from './scripts.ts';
import { askingMs, connectingMs, validity, type Timing } from './timing.ts';

/** The answer to a beat. */
export interface Beat {
  /** When it was sent, on the monotonic clock. */
  readonly sentAt: number;
  /** As long as it is the same, Redis has lost no claim of this node. */
  readonly lossTag: string;
  /** Names the run of the server and its history; '' where it does not say. */
  readonly run: string;
  /** Another process uses this node's id. */
  readonly replaced: boolean;
  /** The others have marked this process dead, and may own its keys. It joins anew with the next beat. */
  readonly markedDead: boolean;
  readonly epoch: number;
  /** False while Redis is being restored. */
  readonly open: boolean;
  /** While it is being restored: id of that. */
  readonly recovery: string | undefined;
  /** Redis wants this node's copy of the configuration. */
  readonly wanted: boolean;
  readonly claimsRevision: number;
  readonly configRevision: number;
  /** Nodes came or went, or describe themselves differently. */
  readonly nodesChanged: boolean;
  /** Nodes that are not heard of: this one has to ask whether they live. */
  readonly asks: readonly NodeIdentity[];
  /** In how many milliseconds the time of a node is over that is not heard of until then. */
  readonly nextSilentMs: number;
}

/** Knowledge of a node that Redis may have lost. */
export interface Knowledge {
  /** Which state of the configuration it has. */
  readonly copy: { readonly epoch: number; readonly revision: number };
  /** The highest fence that it has seen. */
  readonly highest: number;
  /** Progress in a recovery of Redis: `0` nothing, `1` its valid claims are restored, `2` all of them. */
  readonly reported: { readonly recovery: string; readonly state: 0 | 1 | 2 } | undefined;
}

export interface NodesOptions {
  readonly self: NodeIdentity;
  readonly connection: Connection;
  readonly timing: Timing;
  readonly known: KnownPeers;
  readonly clock: ClockWatch;
  readonly signatures: Signatures;
  readonly rejections: Rejections;
  /** Called for a node whose row is malformed: it is not shown. */
  readonly onFault: (error: Error) => void;
}

/** Another node, as it was known when Redis was there last. It may have been restarted since. */
export interface Peer {
  readonly id: string;
  readonly lost: boolean;
}

/** State of an incarnation of another node. It is `over` when another incarnation of that node answers. */
export type Life = 'lives' | 'over' | 'silent' | 'unknown';

/** A node as it describes itself in Redis. */
interface OwnRow extends NodeDescription {
  readonly address: string | undefined;
  /** The node will stop. */
  readonly retires?: boolean;
  /** Number of changes of the row by this incarnation. Nodes of earlier versions do not count. */
  readonly revision?: number;
}

type Row = readonly [id: string, silentMs: number, drains: number, row: string | null, fate: string];
type Reply = readonly [
  string,
  string,
  string,
  number,
  number,
  string,
  string,
  readonly Row[],
  string,
  string,
  readonly (readonly [string, string])[],
];

/** The nodes of the cluster, as Redis has them. */
export class Nodes {
  readonly #options: NodesOptions;
  #rows: readonly NodeRow[] = [];
  /** Ids, states and rows as JSON, without times: a difference is announced. */
  #shown = '';
  /** The last revision of its row that was seen of each life. */
  #revisions: ReadonlyMap<string, number> = new Map();
  /** The row of this node. */
  #own = { json: '', revision: 0, signed: '' };
  #joined = false;
  #isMarkedDead = false;
  /** Incarnations marked dead since the last beat was sent, whose answer may be older than that. */
  readonly #died = new Set<string>();
  /** Incarnations of rows that were reported as marked dead. */
  readonly #reported = new Set<string>();
  /** Time of the last beat that left this node with all nodes of the cluster in `#rows`, on the monotonic clock. */
  #completeAt = -Infinity;
  /** Nothing is placed on this node before it has described itself: it may not be complete yet. */
  #description: NodeDescription = { load: 0, full: true, info: {} };
  #retires = false;
  /** The next beat publishes the row of this node at once. */
  #announces = false;
  #clockOffset = 0;
  /** Where this node's cluster port is reached. */
  address: string | undefined;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  rows(): readonly NodeRow[] {
    return this.#rows;
  }

  /** Position of this node in an order that is the same on all nodes, from 0. */
  get rank(): number {
    return this.#rows.filter(({ id }) => id < this.#options.self.id).length;
  }

  /** The other nodes as last known, to be asked when Redis is away. Undefined if this node has never known any. */
  peers(): readonly Peer[] | undefined {
    if (this.#joined) return this.#others().map(({ id, state }) => ({ id, lost: state === 'lost' }));
    return this.#options.known.initial?.map(({ id }) => ({ id, lost: false }));
  }

  /** Where a node's cluster port is reached. */
  addressOf(id: string): string | undefined {
    const known: readonly { readonly id: string; readonly address: string | undefined }[] = this.#joined
      ? this.#rows
      : (this.#options.known.initial ?? []);
    return known.find((node) => node.id === id)?.address;
  }

  /** The cluster's time in milliseconds since 1970, by the clock of Redis: the same on every node. */
  now(): number {
    return Date.now() + this.#clockOffset;
  }

  /** @returns whether the other nodes should know it at once */
  describe(description: NodeDescription): boolean {
    const { full } = this.#description;
    this.#description = description;
    const announces = full !== description.full;
    this.#announces ||= announces;
    return announces;
  }

  /** This node drains from its next beat on, and cannot be undrained. */
  retire(): void {
    this.#announces ||= !this.#retires;
    this.#retires = true;
  }

  get draining(): boolean {
    const { id, incarnation } = this.#options.self;
    return this.#rows.some((row) => row.id === id && row.incarnation === incarnation && row.state === 'draining');
  }

  /** @throws UnavailableError */
  async beat({ copy, highest, reported }: Knowledge): Promise<Beat> {
    const { self, connection, timing, clock, rejections } = this.#options;
    const [sent, sentAt] = [Date.now(), performance.now()];
    // no other node can have joined since and hold what this node held
    const isComplete = sentAt - this.#completeAt < validity(timing);
    const announces = this.#announces;
    this.#announces = false;
    this.#died.clear();
    const running = connection.run(SCRIPTS.beat, [
      encodeURIComponent(self.id),
      self.incarnation,
      this.#signedRow(),
      timing.ttl,
      timing.forget,
      this.#joined && !this.#isMarkedDead ? 0 : 1,
      timing.grace,
      copy.epoch,
      copy.revision,
      highest,
      reported?.state ?? 0,
      reported?.recovery ?? '',
      JSON.stringify(this.#alive()),
      2 * (connectingMs(timing) + askingMs(timing)),
      announces ? 1 : 0,
      isComplete ? 1 : 0,
    ]);
    const reply = (await running.catch((error: unknown) => {
      this.#announces ||= announces;
      throw error;
    })) as Reply;
    const [status, now, epoch, open, wanted, claimsRevision, configRevision, rows, recovery, lossTag, asks] = reply;
    this.#joined = true;
    this.#isMarkedDead = status === 'buried';
    if (open === 1 || isComplete) this.#completeAt = sentAt;
    this.#clockOffset = Number(now) - (sent + Date.now()) / 2;
    clock.observe(this.#clockOffset, performance.now() - sentAt);
    const revisions = new Map<string, number>();
    const heard = rows.flatMap((row) => this.#read(row, { now: Number(now), revisions }) ?? []);
    rejections.keepOnly('rows', new Set(rows.map(([id]) => id)));
    rejections.keepOnly('certificates', new Set(rows.flatMap(([id]) => parseId(id) ?? [])));
    // a Redis that has lost everything does not know all nodes yet, which exist and may own something
    const unheard = open === 1 ? [] : this.#rows.filter(({ id }) => !heard.some((row) => row.id === id));
    for (const { incarnation } of unheard) revisions.set(incarnation, this.#revisions.get(incarnation) ?? 0);
    this.#revisions = revisions;
    this.#rows = [...heard, ...unheard];
    // one that lives after all, and joins again, may die another time
    for (const one of this.#reported)
      if (!this.#rows.some(({ incarnation, state }) => incarnation === one && state === 'lost'))
        this.#reported.delete(one);
    const before = this.#shown;
    this.#shown = JSON.stringify([this.#rows.map(({ id, state }) => [id, state]), rows.map((row) => row[3])]);
    this.#options.known.keep(
      this.#others().flatMap(({ id, address }) => (address === undefined ? [] : [{ id, address }])),
    );
    return {
      sentAt,
      lossTag,
      run: lossTag.split(':')[1] ?? '',
      replaced: status === 'replaced',
      markedDead: this.#isMarkedDead,
      epoch: Number(epoch),
      open: open === 1,
      recovery: recovery || undefined,
      wanted: wanted === 1,
      claimsRevision: Number(claimsRevision),
      configRevision: Number(configRevision),
      nodesChanged: this.#shown !== before,
      asks: asks.flatMap(([encoded, incarnation]) => {
        const id = parseId(encoded);
        return id === undefined ? [] : { id, incarnation };
      }),
      nextSilentMs: Math.min(...heard.map(({ silentMs }) => timing.ttl - silentMs).filter((left) => left > 0)),
    };
  }

  /**
   * Reports to Redis the state of a silent node. If it is unknown, another node is asked to find out.
   * @throws UnavailableError
   */
  async reportLife({ id, incarnation }: NodeIdentity, life: Life): Promise<void> {
    const { self, connection, timing } = this.#options;
    const found = { lives: 'cut', over: 'gone', silent: 'gone', unknown: 'unknown' }[life];
    const verdict = [found, timing.ttl, `${encodeURIComponent(self.id)} ${self.incarnation}`];
    await connection.run(SCRIPTS.verdict, [encodeURIComponent(id), incarnation, ...verdict]);
  }

  /**
   * Marks a node lost whose process is known to have died. A beat may have shown that before.
   * @returns false when that incarnation is not listed, or was marked already
   */
  markDead({ id, incarnation }: NodeIdentity): boolean {
    this.#died.add(incarnation);
    const present = this.#rows.find((row) => row.id === id && row.incarnation === incarnation);
    if (present === undefined || this.#reported.has(incarnation)) return false;
    this.#reported.add(incarnation);
    this.#rows = this.#rows.map((row) => (row === present ? { ...row, state: 'lost' } : row));
    return true;
  }

  /** @throws UnavailableError, NoNodeError */
  async setDraining(id: string, draining: boolean): Promise<void> {
    const done = await this.#options.connection.run(SCRIPTS.drain, [encodeURIComponent(id), draining ? 1 : 0]);
    if (done !== 1) throw new NoNodeError(`there is no node ${id}`);
  }

  /** The row of this node, signed once for each change. */
  #signedRow(): string {
    const { self, signatures } = this.#options;
    const row: OwnRow = { ...this.#description, address: this.address, ...(this.#retires && { retires: true }) };
    const json = JSON.stringify(row);
    if (json !== this.#own.json) {
      const revision = this.#own.revision + 1;
      const signed = signatures.signRow(self.id, self.incarnation, JSON.stringify({ ...row, revision }));
      this.#own = { json, revision, signed };
    }
    return this.#own.signed;
  }

  /**
   * A row without a valid MAC is as if it were not there, but what this life of the node has said before stays. So it does
   * where the row is an earlier one: Redis came back with an older state, or the row was replayed.
   * @param view the reply that has it; `revisions` gets that of the row
   */
  #read(
    [encoded, silentMs, drains, text, fate]: Row,
    { now, revisions }: { readonly now: number; readonly revisions: Map<string, number> },
  ): NodeRow | undefined {
    const { signatures, rejections, timing, onFault } = this.#options;
    const [, incarnation = '', joined, signed = ''] = /^(\S+) (\d+) (.*)$/s.exec(text ?? '') ?? [];
    const id = parseId(encoded);
    if (id === undefined || joined === undefined) {
      onFault(new Error(`Redis: the row of the node ${encoded} is malformed`));
      return undefined;
    }
    const before = this.#rows.find((row) => row.id === id && row.incarnation === incarnation);
    const json = signatures.readRow(id, incarnation, signed);
    if (json === undefined) rejections.refuse('rows', encoded, 'it has no valid MAC');
    else rejections.trust('rows', encoded);
    const present = json === undefined ? undefined : parseDescription(json);
    const seen = this.#revisions.get(incarnation) ?? 0;
    const revision = present?.revision ?? 0;
    revisions.set(incarnation, Math.max(seen, revision));
    const said = json === undefined || (present !== undefined && revision < seen) ? before : present;
    if (said === undefined) {
      if (json !== undefined) onFault(new Error(`Redis: the row of the node ${encoded} is malformed`));
      return undefined;
    }
    const { address, load, full, info } = said;
    const retires = 'retires' in said && said.retires === true;
    const isSilent = silentMs >= timing.ttl;
    // Redis has lost what became of it, too: until it is asked again, it is what it was
    const wasLost = fate === '' && isSilent && before?.state === 'lost';
    const isLost = fate === 'gone' || wasLost || this.#died.has(incarnation);
    return {
      address,
      load,
      full,
      info,
      id,
      incarnation,
      state: isLost ? 'lost' : stateOf(isSilent, drains === 1 || retires),
      uptimeMs: now - Number(joined),
      silentMs,
    };
  }

  /** Encoded ids of the nodes that were alive when Redis answered last, this one among them. */
  #alive(): string[] {
    return this.#rows.filter(({ state }) => state !== 'lost').map(({ id }) => encodeURIComponent(id));
  }

  #others(): NodeRow[] {
    return this.#rows.filter(({ id }) => id !== this.#options.self.id);
  }

  /** @throws UnavailableError */
  async leave(): Promise<void> {
    const { self, connection, timing } = this.#options;
    await connection.run(SCRIPTS.leave, [encodeURIComponent(self.id), self.incarnation, timing.ttl]);
  }
}

function stateOf(isSilent: boolean, drains: boolean): NodeState {
  if (isSilent) return 'silent';
  return drains ? 'draining' : 'ready';
}

/** undefined when it is malformed. */
function parseDescription(json: string): OwnRow | undefined {
  try {
    const row = JSON.parse(json) as OwnRow;
    return typeof row.load === 'number' && typeof row.info === 'object' && row.info !== null ? row : undefined;
  } catch {
    return undefined;
  }
}
