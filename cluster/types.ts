import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A node and one life of it: the incarnation is new at each start. */
export interface NodeIdentity {
  readonly id: string;
  readonly incarnation: string;
}

/** What a node tells of itself. */
export interface NodeDescription {
  /** 0 idle to 1 busy. */
  readonly load: number;
  /** It is at a limit of its own, or has not told of itself yet: nothing is placed on it. */
  readonly full: boolean;
  /** Whatever else the server shows of it: version, addresses, numbers of streams and sessions. */
  readonly info: { readonly [key: string]: Json };
}

/** `lost`: not heard of within the time to live. */
export type NodeState = 'ready' | 'draining' | 'lost';

export interface NodeRow extends NodeIdentity, NodeDescription {
  /** Where its cluster port is reached: `http://host:port` or `https://host:port`; undefined when it has none. */
  readonly address: string | undefined;
  readonly state: NodeState;
  /** Milliseconds since it joined and since it was last heard of, by the cluster's clock. */
  readonly uptimeMs: number;
  readonly silentMs: number;
}

/** Who holds a key. */
export interface Owner extends NodeIdentity {
  readonly fence: number;
  readonly meta: Json;
}

export interface ClaimOptions {
  /**
   * What becomes of the lease when the store cannot be reached until its end.
   * `stop`: it is lost, unless every peer that was alive says that it has no store either (for what may run once only).
   * `continue`: it is not valid until the store confirms it, but lost only when another holds the key then (for what is
   * there whatever the cluster says: a publisher's stream). Such a key can be claimed without the store, too, when every
   * peer that can be reached denies it.
   */
  readonly silence: 'stop' | 'continue';
  /** Takes the key from whoever has it. The claim resolves when that one has stopped, or its time is over. */
  readonly take?: boolean;
  /** How long after the end of the lease what it kept, or inherited, is there for the next who claims the key; 0 by default. */
  readonly keepMs?: number;
}

/** The right to a key, until it is lost or released. */
export interface Lease {
  readonly key: string;
  /** Greater than that of every earlier holder of the key. Grows when the lease is made anew in a store that had lost it. */
  readonly fence: number;
  /** What holders before kept last, as long as the last of them said (`keepMs`). A claim alone changes nothing of it. */
  readonly inherited: Json | undefined;
  readonly meta: Json;
  /** Aborts when the lease is lost, with a LostError; not when it is released. */
  readonly signal: AbortSignal;
  /** To be asked, right before it, for every effect on others: true only while nobody else can hold the key. */
  readonly valid: boolean;
  /** @throws LostError; UnavailableError when others may not see it before the store can be reached again */
  update(meta: Json): Promise<void>;
  /**
   * Takes the place of what the next holder inherits. Nobody is told, so it costs little.
   * @throws LostError; UnavailableError when the next may not inherit it before the store can be reached again
   */
  keep(value: Json): Promise<void>;
  /** Idempotent, never throws: where the store cannot be told, the lease runs out by itself. */
  release(): Promise<void>;
}

export type Claim = { readonly lease: Lease } | { readonly owner: Owner };

/** A key's holder by now; undefined when nobody holds it any more. */
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

/** Hears which entries were made, changed or removed; entries() has them. */
export type ConfigListener = (keys: readonly string[]) => void | Promise<void>;

/**
 * What was created through the management API, by key. When a write's promise resolves the store has it, as durable as
 * that is: a node alone has it on its disk; in a cluster Redis has it, and the copy on each node's disk follows.
 * Keys are paths of names; no name is empty.
 */
export interface ConfigStore {
  /** As this node knows it. */
  entries(): ReadonlyMap<string, ConfigEntry>;
  /** The store cannot be reached: entries() is what it was. */
  readonly stale: boolean;
  /** Which state of the store entries() is: the same on two nodes that have the same entries of it. */
  readonly position: string;
  /**
   * Resolves when this node has, and its listeners have applied, every write that resolved before the call on any node.
   * Where the store cannot be reached it resolves with `stale` set. Not to be awaited by a listener.
   * @param seen the position of a node that has every write that is to be waited for: the store is not asked when this
   * node is there, too
   */
  sync(seen?: string): Promise<void>;
  /**
   * Makes all changes or none. Listeners of this node hear of it, too; they are not waited for.
   * @param expected entries that are not changed
   * @throws ConflictError when an entry is at another revision by now, StorageError when they could not be kept,
   * UnavailableError when the store cannot be reached
   */
  write(changes: readonly Change[], expected?: readonly Expectation[]): Promise<void>;
  /** Tells of changes from now on, one call at a time. Returns its undo. */
  listen(listener: ConfigListener): () => void;
}

/** Named numbers of one object. */
export type Values = { readonly [name: string]: number };

/** What one node counts of an object. A counter or gauge that is not there is 0. */
export interface StatsRow {
  readonly key: string;
  /** Totals of this incarnation of the node: they never fall. */
  readonly counters: Values;
  /** What is now. */
  readonly gauges: Values;
  /** Of which the greatest counts: times of last events. */
  readonly latest: Values;
}

/** What all nodes count of an object. */
export interface StatsSum {
  /** Of all nodes, dead ones included. */
  readonly counters: Values;
  /** Of the nodes that live. */
  readonly gauges: Values;
  /** The greatest sum that a gauge ever had. */
  readonly maxima: Values;
  /** Since when it is the greatest: milliseconds since 1970. */
  readonly maximaTimes: Values;
  readonly latest: Values;
  /** What of counters and gauges is this node's, as it reported last. */
  readonly own: Pick<StatsRow, 'counters' | 'gauges'>;
}

/** What a node has begun and has to finish; another node does when that one has died. */
export interface NodeRecord {
  /** Unique in the cluster. */
  readonly id: string;
  /** Of the node that has it: one life of it. */
  readonly incarnation: string;
  readonly value: Json;
}

/** A record to take: without a value it is the one that another node has left. */
export type TakenRecord = Pick<NodeRecord, 'id'> & Partial<Pick<NodeRecord, 'value'>>;

/** What became of a record that was to be finished; undefined: it is not for the caller to finish. */
export type Finish = { /** Undefined where the store has lost it. */ readonly value: Json | undefined } | undefined;

/** Records that outlive their node. Each is finished once in the cluster. */
export interface RecordStore {
  /**
   * Puts records under this node, whoever has had them.
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

/** Takes a stream of bytes that another node opened; who has it ends it. */
export type PeerStreamHandler = (stream: Duplex, path: string, from: NodeIdentity) => void;

/** `degraded`: the store cannot be reached. */
export type ClusterState = 'connected' | 'degraded';

export interface ClusterEvents {
  state: [state: ClusterState];
  /** This node was asked to drain, or not to any more. */
  drain: [draining: boolean];
  /** A node came or went, or told something else of itself than before: `nodes()` has it. */
  nodes: [];
  /** The store has lost everything: whoever has put something there puts it again. */
  emptied: [];
  /** Another process took this node's id. */
  replaced: [];
}

/** A server of the store. */
export interface StoreAddress {
  /** A name or an address. */
  readonly host: string;
  readonly port: number;
}

/** What the nodes of one server share. */
export interface Cluster {
  readonly self: NodeIdentity;
  readonly state: ClusterState;
  readonly draining: boolean;
  readonly events: EventEmitter<ClusterEvents>;
  readonly config: ConfigStore;
  readonly records: RecordStore;

  /** Where the store is that this node talks to now, as far as that is known: none without one. */
  stores(): readonly StoreAddress[];
  /** All nodes, this one too, as last heard of. */
  nodes(): readonly NodeRow[];
  /** What others are told of this node, from its next report on. */
  describe(description: NodeDescription): void;
  /** This node is to end: from its next report on it drains, which nobody can undo. Idempotent. */
  retire(): void;
  /** @throws UnavailableError, NoNodeError */
  drain(id: string): Promise<void>;
  /** A node that retires goes on draining. @throws UnavailableError, NoNodeError */
  undrain(id: string): Promise<void>;

  /** @throws UnavailableError */
  claim(key: string, meta: Json, options: ClaimOptions): Promise<Claim>;
  /** As known last where the store cannot be reached. */
  ownerOf(key: string): Promise<Owner | undefined>;
  /** Who holds keys at or below a path, all for ''. As known last where the store cannot be reached. */
  list(path: string): Promise<ReadonlyMap<string, Owner>>;
  /**
   * Tells who holds the keys at or below a path: all of them at first, then what changed, each key with its last state.
   * Returns its undo.
   */
  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void;
  /**
   * Runs `fn` while no other node runs one under the same key. For short steps: the signal aborts, with a
   * ConflictError, when it is no longer alone.
   * @throws UnavailableError, ConflictError when others have the key for too long
   */
  withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T>;

  /** All rows of this node as they are now: one that is missing has ended here. To be called once a second. */
  reportStats(rows: readonly StatsRow[]): Promise<void>;
  /** Sums by key; without those that no node has. @throws UnavailableError */
  stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>>;

  /** Lets other nodes call this one, and open streams to it. */
  serve(handler: PeerHandler, streams?: PeerStreamHandler): void;
  /**
   * @throws UnreachableError when the call provably never reached that life of the node, OutcomeUnknownError when it may have
   */
  forward(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse>;

  /**
   * Opens a stream of bytes to another node: for media. Who opens it and who takes it are known; what goes over it is
   * only as safe as the port (TLS).
   * @throws UnreachableError
   */
  connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex>;

  /** Gives up what this node holds, and leaves. Idempotent. */
  close(): Promise<void>;
}
