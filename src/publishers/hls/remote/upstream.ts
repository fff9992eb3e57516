import { joinKey, type NodeIdentity } from '#cluster';
import type { Application } from '../../../core/application.ts';
import type { RelayTree } from '../../../directory/relay-tree.ts';
import { ShunnedNodes } from '../../../directory/shunned-nodes.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { Interrupts } from './interrupts.ts';

/** By which nodes are ranked for a stream. */
export function treeKey({ kind }: HlsForm, { vhost, name: app }: Application, output: string): string {
  return joinKey(kind, vhost.name, app, output);
}

/** At least so long, and up to twice, other nodes are asked instead of an owner that sends the stream to enough, in milliseconds. */
const RELAYED_MS = 120_000;

/**
 * Which node a stream comes from. That is its owner, until that says that it sends the stream to enough nodes: then it is one that is
 * nearer to the owner in the tree of the stream, as long as that one lives and answers.
 */
export class Upstream {
  readonly #tree: Pick<RelayTree, 'parent' | 'has'>;
  /** By which nodes are ranked. */
  readonly #key: string;
  readonly #left = new Interrupts();
  readonly #shunned = new ShunnedNodes();
  /** Until when the owner is not asked, by the monotonic clock: it may send the stream to fewer nodes then. */
  #relayedUntil = 0;
  #parent: NodeIdentity | 'owner' | undefined;

  constructor(tree: Pick<RelayTree, 'parent' | 'has'>, key: string) {
    this.#tree = tree;
    this.#key = key;
  }

  /** The owner sends the stream to enough nodes: this one is to ask others. */
  ownerAtCapacity(): void {
    this.#relayedUntil = performance.now() + RELAYED_MS * (1 + Math.random());
    if (this.#parent === 'owner') this.#parent = undefined;
  }

  /** Whom to ask; undefined: the owner. */
  parent(owner: NodeIdentity): NodeIdentity | undefined {
    if (performance.now() > this.#relayedUntil) return undefined;
    const chosen = this.#parent;
    const isAsked = chosen === 'owner' || (chosen !== undefined && chosen.id !== owner.id);
    const parent = isAsked ? chosen : (this.#tree.parent(this.#key, owner, this.#shunned.incarnations) ?? 'owner');
    this.#parent = parent;
    return parent === 'owner' ? undefined : parent;
  }

  /** It does not give the stream: another node is asked, also for what it is being asked for. */
  shun(node: NodeIdentity): void {
    this.#shunned.add(node);
    if (this.#parent !== node) return;
    this.#parent = undefined;
    this.#left.fire();
  }

  /** Leaves a parent that has gone, or is about to. */
  tick(): void {
    const parent = this.#parent;
    if (parent !== undefined && parent !== 'owner' && !this.#tree.has(parent)) this.shun(parent);
  }

  /** What comes of a promise, or undefined when the parent is left before that. */
  unlessLeft<T>(promise: Promise<T>): Promise<T | undefined> {
    return this.#left.unlessFired(promise);
  }
}
