import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { UnavailableError, UnreachableError } from '../../errors.ts';
import type { PeerPort } from '../../peer/port.ts';
import { isRefusal } from '../../peer/refusal.ts';
import type { NodeIdentity, NodeRow } from '../../types.ts';

/** Nodes that each node watches: with that many dead at once, each of them is still watched. */
const WATCHED = 2;
const FIRST_PAUSE_MS = 12;
const MAX_PAUSE_MS = 1000;
/** A connection that lasted for less is made again after a pause. */
const LASTING_MS = 1000;
/** Attempts to connect to a node that another call has found closed. */
const TRIES = 8;

export interface DeathDetectorOptions {
  readonly self: NodeIdentity;
  readonly port: Pick<PeerPort, 'hold'>;
  readonly nodes: () => readonly NodeRow[];
  /** How long a connection may take, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Asks Redis to mark a node dead whose port refuses connections.
   * @returns false when Redis still has a subscription of its process, or cannot know
   * @throws UnavailableError
   */
  readonly markDead: (node: NodeIdentity) => Promise<boolean>;
  readonly onFault: (error: Error) => void;
}

/**
 * Finds out at once that the process of another node has died. Each node holds a connection to some others. When such a
 * connection ends and the port refuses another one, Redis is asked whether the subscription of that process has
 * ended, too. Neither proof is a silence: a suspended process keeps both.
 */
export class DeathDetector {
  readonly #options: DeathDetectorOptions;
  /** By incarnation. */
  readonly #watches = new Map<string, AbortController>();
  /** Incarnations that are not watched, and are looked at since a call was refused. */
  readonly #checked = new Set<string>();
  /** Incarnations that were reached from here: of any other a refusal says only that it cannot be reached. */
  readonly #met = new Set<string>();
  readonly #end = new AbortController();

  constructor(options: DeathDetectorOptions) {
    this.#options = options;
  }

  /** Nodes came or went. */
  follow(): void {
    if (this.#end.signal.aborted) return;
    const rows = this.#options.nodes();
    const present = new Set(rows.map(({ incarnation }) => incarnation));
    for (const incarnation of this.#met) if (!present.has(incarnation)) this.#met.delete(incarnation);
    const watched = new Map(watchedBy(this.#options.self, rows).map((node) => [node.incarnation, node]));
    for (const [incarnation, watch] of this.#watches) {
      if (watched.has(incarnation)) continue;
      watch.abort();
      this.#watches.delete(incarnation);
    }
    for (const [incarnation, node] of watched) {
      if (this.#watches.has(incarnation)) continue;
      const watch = new AbortController();
      this.#watches.set(incarnation, watch);
      this.#watch(node, watch.signal).catch(this.#options.onFault);
    }
  }

  /** A node has proved who it is. */
  reached({ incarnation }: NodeIdentity): void {
    if (incarnation !== '') this.#met.add(incarnation);
  }

  /** The port of a node has refused a connection. */
  refused({ id, incarnation }: NodeIdentity): void {
    const isKnown = this.#watches.has(incarnation) || this.#checked.has(incarnation);
    if (isKnown || !this.#met.has(incarnation) || this.#end.signal.aborted) return;
    this.#checked.add(incarnation);
    this.#check({ id, incarnation })
      .catch(this.#options.onFault)
      .finally(() => this.#checked.delete(incarnation));
  }

  /** Idempotent. */
  close(): void {
    this.#end.abort();
    for (const watch of this.#watches.values()) watch.abort();
    this.#watches.clear();
  }

  /** Runs as long as the node is one of those that this one watches. */
  async #watch(node: NodeIdentity, signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const stream = await this.#connect(node);
      if (stream === 'dead') return;
      const since = performance.now();
      if (stream !== undefined) await isOver(stream, signal);
      const isLasting = stream !== undefined && performance.now() - since > LASTING_MS;
      failures = isLasting ? 0 : failures + 1;
      if (!isLasting) await pause(failures, signal);
    }
  }

  /** Runs until the node is known to be dead, or to live. */
  async #check(node: NodeIdentity): Promise<void> {
    const { signal } = this.#end;
    for (let failures = 0; failures < TRIES && !signal.aborted;) {
      const stream = await this.#connect(node);
      if (stream === 'dead') return;
      if (stream !== undefined) return void stream.destroy();
      await pause(++failures, signal);
    }
  }

  /** @returns the connection that a node which lives has accepted; undefined when it is not known whether it lives */
  async #connect(node: NodeIdentity): Promise<Duplex | 'dead' | undefined> {
    const { port, timeoutMs, markDead } = this.#options;
    try {
      const stream = await port.hold(node, timeoutMs);
      stream.on('error', () => stream.destroy());
      return stream;
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      if (!isRefusal(error) || !this.#met.has(node.incarnation)) return undefined;
    }
    try {
      return (await markDead(node)) ? 'dead' : undefined;
    } catch (error) {
      // without Redis no node can take over anything
      if (error instanceof UnavailableError) return undefined;
      throw error;
    }
  }
}

/** The nodes that this one watches: those that come next, in the order of their ids. */
export function watchedBy(self: Pick<NodeIdentity, 'id'>, rows: readonly NodeRow[]): NodeRow[] {
  const others = rows
    .filter(({ id, state, address }) => id !== self.id && state !== 'lost' && address !== undefined)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const after = others.filter(({ id }) => id > self.id);
  return [...after, ...others.filter(({ id }) => id < self.id)].slice(0, WATCHED);
}

async function isOver(stream: Duplex, signal: AbortSignal): Promise<void> {
  stream.resume();
  await once(stream, 'close', { signal }).catch(() => undefined);
  stream.destroy();
}

async function pause(failures: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10));
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
