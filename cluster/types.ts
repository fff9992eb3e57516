/*
 * Words of this folder:
 *
 * - *Store*: Redis, or the file of a node that runs alone. *Incarnation*: one run of a node's process.
 * - *Key*: a name that one node may own, such as that of a stream. *Claim*: the entry in the store by which a node owns a key; its
 *   *token* identifies it. *Lease*: the right that comes with the claim, as its holder sees it.
 * - *Fence*: the number of a claim, greater than those of all earlier claims of the key.
 * - *Beat*: the regular report of a node that it is alive, which renews all of its leases.
 * - *Silent*: without a beat for the time to live. *Lost*: silent, and without an answer to other nodes, or *marked dead*: its
 *   process has provably ended.
 * - *Take*: to claim a key that another lease holds. The new lease begins when the holder of the former one has *stopped*.
 * - *Missing*: of a claim that the store has lost. *Restore*: to make it again.
 * - *Loss tag*: a text in the answer to a beat that changes when the store may have lost a claim of the node.
 * - *Promise*: of a node without the store to another one, which has none either: to claim nothing new for the time to live.
 * - *Abandoned*: of a claim that is to be deleted, since its lease has ended, or the holder does not know whether it was made.
 * - *Kept*: of a value that a holder leaves in the store. *Inherited*: of that value, for the next holder.
 */
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A node and one run of its process: the incarnation is new at each start. */
export interface NodeIdentity {
  readonly id: string;
  readonly incarnation: string;
}

/** How a node describes itself to the others. */
export interface NodeDescription {
  /** 0 idle to 1 busy. */
  readonly load: number;
  /** The node is at a limit of its own, or has not described itself yet: nothing is placed on it. */
  readonly full: boolean;
  /** Anything else that the API shows: version, addresses, numbers of streams and sessions. */
  readonly info: { readonly [key: string]: Json };
}

/**
 * `silent`: the store has not heard of it within the time to live; it is being asked whether it lives, or has said that it
 * is cut off from the store alone. `lost`: it did not answer.
 */
export type NodeState = 'ready' | 'draining' | 'silent' | 'lost';

export interface NodeRow extends NodeIdentity, NodeDescription {
  /** Where its cluster port is reached: `http://host:port` or `https://host:port`; undefined when it has none. */
  readonly address: string | undefined;
  readonly state: NodeState;
  /** Milliseconds since it joined and since its last beat, by the cluster's clock. */
  readonly uptimeMs: number;
  readonly silentMs: number;
}

/** The owner of a key. */
export interface Owner extends NodeIdentity {
  readonly fence: number;
  readonly meta: Json;
}

export interface ClaimOptions {
  /**
   * Fate of the lease when the store cannot be reached until its end.
   * `stop`: it is lost, unless every peer that was alive says that it has no store either (for what may run only once).
   * `continue`: it is invalid until the store confirms it, and lost only if another node holds the key by then (for what
   * exists anyway: a publisher's stream). Such a key can be claimed without the store, too, if no reachable peer knows an
   * owner of it.
   */
  readonly silence: 'stop' | 'continue';
  /**
   * Takes the key from any owner, or only from the given one: not from one with a later fence. The claim resolves when that
   * owner has stopped, or its time is over.
   */
  readonly take?: boolean | Pick<Owner, 'fence'>;
  /** How long the kept (or inherited) value outlives the lease, for the next owner of the key; 0 by default. */
  readonly keepMs?: number;
}

/** The right to a key, until it is lost or released. */
export interface Lease {
  readonly key: string;
  /** Greater than that of every earlier holder of the key. Grows when the claim is restored in a store that had lost it. */
  readonly fence: number;
  /** The value that an earlier owner kept last, unless its time (`keepMs`) is over. A claim alone does not change it. */
  readonly inherited: Json | undefined;
  readonly meta: Json;
  /** Aborts when the lease is lost, with a LostError; not when it is released. */
  readonly signal: AbortSignal;
  /** Check it right before every effect on others: true only while no other node can hold the key. */
  readonly valid: boolean;
  /** @throws LostError; UnavailableError when others may not see it before the store can be reached again */
  update(meta: Json): Promise<void>;
  /**
   * Sets the value that the next owner inherits. No node is notified, so it costs little.
   * @throws LostError; UnavailableError when the next may not inherit it before the store can be reached again
   */
  keep(value: Json): Promise<void>;
  /** Idempotent, never throws: if the store is unreachable, the lease expires by itself. */
  release(): Promise<void>;
}

export type Claim = { readonly lease: Lease } | { readonly owner: Owner };

/** The new owner of a key; undefined when it has none any more. */
export interface OwnerChange {
  readonly key: string;
  readonly owner: Owner | undefined;
}

/** One stored object. `revision` grows with every change of any entry of the store. */
export interface ConfigEntry {
  readonly value: Json;
  readonly revision: number;
}

/** One entry of a write. */
export interface Change {
  readonly key: string;
  /** Absent: the entry is removed with everything below its path. Listeners hear of the key also when there was none. */
  readonly value?: Json;
  /** Revision that the change is made of, 0 when there must be no entry yet. */
  readonly seen: number;
}

/** An entry that has to be at a revision, 0 for none, for a write to be made. */
export type Expectation = Pick<Change, 'key' | 'seen'>;

/** Called with the keys of entries that were created, changed or removed; entries() has them. */
export type ConfigListener = (keys: readonly string[]) => void | Promise<void>;

/**
 * Objects created through the management API, by key. When a write's promise resolves the store has it, as durable as the
 * store is: a node alone has it on its disk; in a cluster Redis has it, and the copy on each node's disk follows.
 * Keys are paths of names; no name is empty.
 */
export interface ConfigStore {
  entries(): ReadonlyMap<string, ConfigEntry>;
  /** The store cannot be reached: entries() is what it was. */
  readonly stale: boolean;
  /** Which state of the store entries() is: the same on two nodes that have the same entries of it. */
  readonly position: string;
  /**
   * Resolves when this node has every write that resolved before the call on any node, and its listeners have handled it.
   * If the store is unreachable, it resolves with `stale` set. A listener must not await it. Undefined when nothing has to be
   * waited for.
   * @param seen the position of a node that has every write that is to be waited for: the store is not asked when this
   * node is there, too
   */
  sync(seen?: string): Promise<void> | undefined;
  /**
   * Makes all changes or none. Listeners of this node are called, too; the promise does not wait for them.
   * @param expected entries that are not changed
   * @throws ConflictError when an entry is at another revision by now, StorageError when they could not be kept,
   * UnavailableError when the store cannot be reached
   */
  write(changes: readonly Change[], expected?: readonly Expectation[]): Promise<void>;
  /** Calls the listener for each change from now on, one call at a time. Returns its undo. */
  listen(listener: ConfigListener): () => void;
}

/** Named numbers of one object. */
export type Values = { readonly [name: string]: number };

/** Counts of an object by one node. An absent counter or gauge is 0. */
export interface StatsRow {
  readonly key: string;
  /** Totals of this incarnation of the node: they never fall. */
  readonly counters: Values;
  /** Present values. */
  readonly gauges: Values;
  /** Values of which the greatest counts, such as times of last events. */
  readonly latest: Values;
}

/** Counts of an object by all nodes. */
export interface StatsSum {
  /** Sums over all nodes, dead ones included. */
  readonly counters: Values;
  /** Sums over the live nodes. */
  readonly gauges: Values;
  /** The greatest sum that a gauge ever had. */
  readonly maxima: Values;
  /** Since when it is the greatest: milliseconds since 1970. */
  readonly maximaTimes: Values;
  readonly latest: Values;
  /** This node's part of counters and gauges, as of its last report. */
  readonly own: Pick<StatsRow, 'counters' | 'gauges'>;
  /** Ids of the other nodes that have the object. */
  readonly others: readonly string[];
}

/** A task that a node has begun and has to finish; another node finishes it when that node has died. */
export interface NodeRecord {
  /** Unique in the cluster. */
  readonly id: string;
  /** Incarnation of the node that has it. */
  readonly incarnation: string;
  readonly value: Json;
}

/** A record to take: without a value it is the one that another node has left. */
export type TakenRecord = Pick<NodeRecord, 'id'> & Partial<Pick<NodeRecord, 'value'>>;

/** Result of finishing a record; undefined: it is not for the caller to finish. */
export type Finish = { /** Undefined where the store has lost it. */ readonly value: Json | undefined } | undefined;

/** Records that outlive their node. Each is finished once in the cluster. */
export interface RecordStore {
  /**
   * Puts records under this node, whichever node had them.
   * @returns for each, false when it is finished already
   * @throws UnavailableError
   */
  put(records: readonly TakenRecord[]): Promise<readonly boolean[]>;
  /**
   * Finishes records that are still under the life of a node that is named. One of this node that the store has lost is
   * finished, too. That one is finished is known for ten minutes at least, as long as not too many are.
   * @returns for each, what became of it
   * @throws UnavailableError
   */
  finish(records: readonly Pick<NodeRecord, 'id' | 'incarnation'>[]): Promise<readonly Finish[]>;
  /** All records that are there all the time, page by page; one may come twice. @throws UnavailableError */
  pages(): AsyncIterable<readonly NodeRecord[]>;
}

/** A call from one node to another. Header names are in lower case. */
export interface PeerRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly body: Buffer;
}

export interface PeerResponse {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: Buffer;
}

/** Answers calls of other nodes. Such a call is never forwarded again. */
export type PeerHandler = (request: PeerRequest, from: NodeIdentity) => Promise<PeerResponse>;

/** Accepts a stream of bytes that another node has opened, and has to end it. */
export type PeerStreamHandler = (stream: Duplex, path: string, from: NodeIdentity) => void;

/** `degraded`: the store cannot be reached. */
export type ClusterState = 'connected' | 'degraded';

export interface ClusterEvents {
  state: [state: ClusterState];
  /** This node begins to drain, or stops draining. */
  drain: [draining: boolean];
  /** A node came or went, or describes itself differently: `nodes()` has it. */
  nodes: [];
  /** The store has lost its content: what was put there has to be put there again. */
  emptied: [];
  /** Another process uses this node's id. */
  replaced: [];
}

/** How much this node refuses at present because it is not proved to come from the cluster. */
export interface Rejected {
  /** Entries of the configuration in the store without a valid MAC. */
  readonly entries: number;
  /** Rows of nodes in the store without a valid MAC. */
  readonly rows: number;
  /** Nodes whose certificate does not name them. */
  readonly certificates: number;
}

/** A server of the store. */
export interface StoreAddress {
  /** A name or an address. */
  readonly host: string;
  readonly port: number;
}

/** Services that the nodes of a cluster share. */
export interface Cluster {
  readonly self: NodeIdentity;
  readonly state: ClusterState;
  readonly draining: boolean;
  readonly events: EventEmitter<ClusterEvents>;
  readonly config: ConfigStore;
  readonly records: RecordStore;

  readonly rejected: Rejected;
  /** How many keys this node holds. */
  readonly held: number;

  /** The servers of the store that this node is connected to, as far as known; empty without a store. */
  stores(): readonly StoreAddress[];
  /** All nodes, including this one, as of the last beat. */
  nodes(): readonly NodeRow[];
  /** Sets how this node describes itself, from its next beat on. */
  describe(description: NodeDescription): void;
  /**
   * This node will stop: it drains from now on, which cannot be undone. Idempotent. Resolves when the others hear of it before
   * whatever this node does next; after a moment where there is no store.
   */
  retire(): Promise<void>;
  /** @throws UnavailableError, NoNodeError */
  drain(id: string): Promise<void>;
  /** A node that retires goes on draining. @throws UnavailableError, NoNodeError */
  undrain(id: string): Promise<void>;

  /** @throws UnavailableError */
  claim(key: string, meta: Json, options: ClaimOptions): Promise<Claim>;
  /** As last known if the store is unreachable. */
  ownerOf(key: string): Promise<Owner | undefined>;
  /** Owners of the keys at or below a path; of all keys for ''. As last known if the store is unreachable. */
  list(path: string): Promise<ReadonlyMap<string, Owner>>;
  /**
   * Watches the owners of the keys at or below a path: first all of them, then changes, each key with its last state.
   * Returns its undo.
   */
  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void;
  /**
   * Runs `fn` while no other node runs one under the same key. For short steps: the signal aborts, with a
   * ConflictError, when it is no longer alone.
   * @throws UnavailableError, ConflictError when others have the key for too long
   */
  withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T>;

  /**
   * Reports all rows of this node: one that is missing has ended here. Call it once a second.
   * @returns false when the store may not have all of them: what has ended is to be in the next report, too
   */
  reportStats(rows: readonly StatsRow[]): Promise<boolean>;
  /** Sums by key; without those that no node has. @throws UnavailableError */
  stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>>;

  /** Lets other nodes call this one, and open streams to it. */
  serve(handler: PeerHandler, streams?: PeerStreamHandler): void;
  /**
   * @throws UnreachableError when the call provably never reached that incarnation of the node, OutcomeUnknownError when it
   * may have
   */
  forward(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse>;

  /**
   * Whether that life of a node goes on. One that answers lives, also when it has only lost the store; it is over when
   * another life of the node answers.
   * @returns undefined when neither is proved: it did not answer, or this node knows no such node that it trusts
   */
  lives(node: NodeIdentity): Promise<boolean | undefined>;

  /**
   * Opens a stream of bytes to another node, for media. Both ends are authenticated; the bytes are only as safe as the
   * port (TLS).
   * @throws UnreachableError
   */
  connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex>;

  /** Releases what this node holds, and leaves the cluster. Idempotent. */
  close(): Promise<void>;
}
