import { isSameIncarnation, type NodeIdentity } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import { RELAY_SILENCE_MS } from './relay-path.ts';
import type { RelayTree } from './relay-tree.ts';
import { ShunnedNodes } from './shunned-nodes.ts';

/** Wait of a viewer while the owner is unreachable: another node may soon have the stream. Players give up after 10 s. */
export const OWNER_HELD_MS = 8000;
/** Parents that may refuse before the owner sends the stream, whether it is full or not. */
const MAX_PARENTS = 3;
const FIRST_LOOK_MS = 30_000;
const LONGEST_LOOK_MS = 240_000;
/** Share of a pause by which it varies, so that nodes do not ask all at once. */
const SPREAD = 0.25;

/** A node and the role in which it sends a stream: its owner, a parent that relays it, or the owner though it may be full. */
export interface Sender {
  readonly node: NodeIdentity;
  readonly role: 'owner' | 'parent' | 'forced owner';
}

/**
 * Reason why a node does not send a stream. `full`: it sends to enough nodes. `unknown`: its version does not know the request.
 * `waiting`: a parent waits for the owner, which answers this node.
 */
export type Refusal = 'full' | 'unknown' | 'unreachable' | 'waiting' | 'failed';

/**
 * The choice of the node that sends a stream of another node to this one, for packets and for HLS files alike. It sends no
 * request itself: the caller asks `next`, and reports the outcome. The table is in src/relay/README.md.
 */
export class StreamSender {
  readonly #tree: Pick<RelayTree, 'self' | 'parent' | 'unreachable'>;
  readonly #stream: string;
  readonly #shunned = new ShunnedNodes();
  readonly #looks = new BackOff(LONGEST_LOOK_MS, FIRST_LOOK_MS);
  #owner: NodeIdentity;
  #next: Sender;
  #present: Sender | undefined;
  #refusals = 0;
  /** Milliseconds of the monotonic clock, as `#waitingSince`. */
  #lookAt = 0;
  #waitingSince: number | undefined;
  #left = new AbortController();

  constructor(tree: Pick<RelayTree, 'self' | 'parent' | 'unreachable'>, stream: string, owner: NodeIdentity) {
    this.#tree = tree;
    this.#stream = stream;
    this.#owner = owner;
    this.#next = this.#first;
    this.begin(owner);
  }

  get owner(): NodeIdentity {
    return this.#owner;
  }

  /** The node to ask. The same object until a report changes the choice. */
  get next(): Sender {
    return this.#next;
  }

  get parent(): NodeIdentity | undefined {
    return this.#present?.role === 'parent' ? this.#present.node : undefined;
  }

  /** Aborted when a parent is left: what was asked of it is asked of another node. */
  get left(): AbortSignal {
    return this.#left.signal;
  }

  get lookInMs(): number {
    return Math.max(0, this.#lookAt - performance.now());
  }

  /** Restarts with the owner, without a sender. */
  begin(owner = this.#owner): void {
    this.#owner = owner;
    this.#present = undefined;
    this.#refusals = 0;
    this.#waitingSince = undefined;
    this.#next = this.#first;
    this.#leave();
    this.#looks.reset();
    this.#schedule();
  }

  sends(node: NodeIdentity): void {
    if (!isSameIncarnation(node, this.#next.node)) return;
    this.#present = this.#next;
    this.#refusals = 0;
    this.#waitingSince = undefined;
  }

  /**
   * Reports that a node does not send the stream, or sends it no longer.
   * @returns whether another one is to be asked; false when the present sender stays, or no other is left
   */
  refused(node: NodeIdentity, why: Refusal): boolean {
    const asked = this.#next;
    if (!isSameIncarnation(node, this.#owner)) {
      if (why === 'waiting' && !this.#hasWaited()) return false;
      (why === 'unreachable' ? this.#tree.unreachable : this.#shunned).add(node);
      this.#leave();
      if (isSameIncarnation(node, this.#present?.node)) {
        this.begin();
        return true;
      }
    }
    if (!isSameIncarnation(node, asked.node)) return false;
    if (asked.role === 'parent') this.#choose(this.#refusals + 1);
    else if (asked.role === 'owner' && why === 'full') this.#ownerIsFull();
    else if (this.#present !== undefined) this.#next = this.#present;
    else if (asked.role === 'owner' && why === 'unknown') this.#next = this.#forced;
    return this.#next !== asked && this.#next !== this.#present;
  }

  /**
   * Follows the stream to another owner. With a parent this node stays: the parent follows it as well.
   * @returns whether the present sender is left
   */
  moved(owner: NodeIdentity): boolean {
    if (isSameIncarnation(owner, this.#owner)) return false;
    const { node, role } = this.#present ?? this.#next;
    if (role !== 'parent' || node.id === owner.id || owner.id === this.#tree.self.id) {
      this.begin(owner);
      return true;
    }
    this.#owner = owner;
    this.#next = this.#present ?? this.#next;
    return false;
  }

  /**
   * Chooses the node that the tree prefers, if another one sends the stream. The present sender stays until that one sends it.
   * The owner is asked only by nodes that may get the stream from it, or do now.
   * @returns whether `next` is to be asked
   */
  look(): boolean {
    this.#schedule();
    const { node } = this.#present ?? this.#next;
    const place = this.#tree.parent(this.#stream, this.#owner) ?? this.#owner;
    if (this.#owner.id === this.#tree.self.id || isSameIncarnation(place, node)) return false;
    if ([place, node].some((one) => isSameIncarnation(one, this.#owner))) this.#next = this.#first;
    else this.#choose(0);
    return this.#next !== this.#present;
  }

  get #first(): Sender {
    return this.#owner.id === this.#tree.self.id ? this.#forced : { node: this.#owner, role: 'owner' };
  }

  get #forced(): Sender {
    return { node: this.#owner, role: 'forced owner' };
  }

  #ownerIsFull(): void {
    if (isSameIncarnation(this.#owner, this.#present?.node)) this.#present = this.#forced;
    this.#choose(0);
  }

  /** Chooses the nearest parent. The present sender stays where no parent is better, or enough have refused. */
  #choose(refusals: number): void {
    this.#refusals = refusals;
    const otherwise = this.#present ?? this.#forced;
    const parent =
      refusals < MAX_PARENTS ? this.#tree.parent(this.#stream, this.#owner, this.#shunned.incarnations) : undefined;
    const isBetter = parent !== undefined && !isSameIncarnation(parent, otherwise.node);
    this.#next = isBetter ? { node: parent, role: 'parent' } : otherwise;
  }

  #hasWaited(): boolean {
    const now = performance.now();
    this.#waitingSince ??= now;
    return now - this.#waitingSince >= RELAY_SILENCE_MS;
  }

  #leave(): void {
    this.#left.abort();
    this.#left = new AbortController();
  }

  #schedule(): void {
    const spread = 1 + SPREAD * (2 * Math.random() - 1);
    this.#lookAt = performance.now() + this.#looks.next() * spread;
  }
}
