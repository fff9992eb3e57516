import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';
import { OutcomeUnknownError, UnreachableError } from '../errors.ts';
import type { PeerPort } from '../peer/port.ts';
import { isReachable } from '../peer/reachable.ts';
import type { NodeIdentity, PeerHandler, PeerRequest, PeerResponse } from '../types.ts';
import type { KeyFence } from './leases/leases.ts';
import type { Life, Nodes, Peer } from './nodes.ts';
import { askingMs, connectingMs, type Timing } from './timing.ts';

/** Method of the questions of the cluster itself; everything else goes to the handler. */
const QUESTION = 'kiln:peer';

type Held = readonly KeyFence[];

const Question = Type.Union([
  Type.Object({
    about: Type.Literal('store'),
    held: Type.Array(Type.Tuple([Type.String(), Type.Number()])),
    round: Type.Optional(Type.Number()),
  }),
  Type.Object({ about: Type.Literal('confirmed'), round: Type.Number() }),
  Type.Object({ about: Type.Literal('key'), key: Type.String() }),
  Type.Object({ about: Type.Literal('life') }),
]);
type Question =
  | { readonly about: 'store'; readonly held: Held; readonly round?: number }
  /** No question: Redis has what the sender holds, and the promises of its rounds so far are over. */
  | { readonly about: 'confirmed'; readonly round: number }
  | { readonly about: 'key'; readonly key: string }
  /** Any answer says that the node lives. */
  | { readonly about: 'life' };

const Reply = Type.Object({
  withoutStore: Type.Boolean(),
  /** About a key: the caller must not claim it. */
  holds: Type.Boolean(),
  /** About the store: keys that this node has a later claim of. */
  superseded: Type.Array(Type.String()),
});
type Reply = Static<typeof Reply>;

const NOT_UNDERSTOOD: Reply = { withoutStore: false, holds: true, superseded: [] };

export interface PeersOptions {
  readonly self: NodeIdentity;
  readonly port: PeerPort;
  readonly nodes: Nodes;
  readonly timing: Timing;
  readonly isDegraded: () => boolean;
  /** Whether this node owns a key, or knows its owner. */
  readonly holds: (key: string) => boolean;
  /** Keys held by another node of which this node has a later claim. */
  readonly laterClaims: (held: Held, by: NodeIdentity) => string[];
}

/**
 * Questions between nodes when Redis is unreachable. An owner continues only if all nodes that were alive answer that they have
 * no Redis either. A node that answers so claims nothing new for the time to live, even if Redis is back at once: so the
 * owner keeps what it has until it asks again, or until it says that Redis has it.
 */
export class Peers {
  readonly #options: PeersOptions;
  #handler: PeerHandler | undefined;
  /** By the incarnation that asked: until when, on the monotonic clock, and in which of its rounds. */
  readonly #promises = new Map<string, { readonly until: number; readonly round: number }>();
  /** Number of rounds in which this node has asked, and the last one before Redis confirmed what it holds. */
  #round = 0;
  #confirmed = 0;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  serve(handler: PeerHandler): void {
    this.#handler = handler;
  }

  /** Until when this node claims nothing new, on the monotonic clock. */
  get promisedUntil(): number {
    return Math.max(-Infinity, ...[...this.#promises.values()].map(({ until }) => until));
  }

  /** Whether this node may claim keys that others have owned. */
  get mayClaim(): boolean {
    return performance.now() >= this.promisedUntil;
  }

  /**
   * Asks every other node whether it is without Redis, too. One that was lost need not answer, but its answer counts: it
   * may be back, and may have claimed something, without this node knowing.
   * @param held what this node holds
   * @returns keys that others have later claims of; undefined when a node has Redis, or was alive and is unreachable
   */
  async allWithoutStore(held: Held): Promise<ReadonlySet<string> | undefined> {
    const question = { about: 'store', held, round: ++this.#round } as const;
    const others = this.#options.nodes.peers() ?? [];
    const replies = await Promise.all(others.map((node) => this.#ask(node, question)));
    if (!replies.every((reply, at) => reply?.withoutStore ?? others[at]?.lost)) return undefined;
    return new Set(replies.flatMap((reply) => reply?.superseded ?? []));
  }

  /** Redis has everything that this node holds: others need not keep the promises that they have given so far. */
  async confirm(): Promise<void> {
    if (this.#confirmed === this.#round) return;
    this.#confirmed = this.#round;
    const question = { about: 'confirmed', round: this.#round } as const;
    // for one that does not hear it the promise ends by itself
    await Promise.all((this.#options.nodes.peers() ?? []).map((node) => this.#ask(node, question)));
  }

  /**
   * Whether no reachable node knows an owner of the key. False if the other nodes are not known.
   */
  async allDeny(key: string): Promise<boolean> {
    const peers = this.#options.nodes.peers();
    if (peers === undefined) return false;
    const replies = await Promise.all(peers.map((node) => this.#ask(node, { about: 'key', key })));
    return replies.every((reply) => reply === undefined || !reply.holds);
  }

  /**
   * Whether that life of a node is still there, and its process goes on. It may refuse the call: that is an answer, too.
   * @returns `unknown` when there is no row of it that this node trusts
   */
  async ask(node: NodeIdentity): Promise<Life> {
    const { self, nodes, timing } = this.#options;
    if (node.id === self.id) return node.incarnation === self.incarnation ? 'lives' : 'over';
    const address = nodes.addressOf(node.id);
    if (address === undefined) return 'unknown';
    if (!(await isReachable(address, connectingMs(timing)))) return 'silent';
    try {
      await this.#send(node, { about: 'life' }, askingMs(timing), { once: true });
      return 'lives';
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof OutcomeUnknownError)) throw error;
      if (error.lives === undefined) return 'silent';
      return error.lives ? 'lives' : 'over';
    }
  }

  async answer(request: PeerRequest, from: NodeIdentity): Promise<PeerResponse> {
    if (request.method !== QUESTION) {
      return this.#handler?.(request, from) ?? { status: 503, headers: {}, body: Buffer.alloc(0) };
    }
    const question = read(Question, request.body);
    if (question === undefined) return { status: 400, headers: {}, body: Buffer.alloc(0) };
    const withoutStore = this.#options.isDegraded();
    if (question.about === 'store' && withoutStore) this.#promise(from.incarnation, question.round ?? Infinity);
    if (question.about === 'confirmed') this.#release(from.incarnation, question.round);
    const reply: Reply = {
      withoutStore,
      holds: question.about === 'key' && this.#options.holds(question.key),
      superseded: question.about === 'store' ? this.#options.laterClaims(question.held, from) : [],
    };
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(reply)) };
  }

  #promise(to: string, round: number): void {
    const now = performance.now();
    for (const [incarnation, { until }] of this.#promises) if (until < now) this.#promises.delete(incarnation);
    this.#promises.set(to, { until: now + this.#options.timing.ttl, round });
  }

  #release(to: string, round: number): void {
    const promise = this.#promises.get(to);
    if (promise !== undefined && promise.round <= round) this.#promises.delete(to);
  }

  /** Asks whichever incarnation of the node runs: it may have been restarted since Redis was reachable last. */
  async #ask({ id }: Peer, question: Question): Promise<Reply | undefined> {
    return await this.#call({ id, incarnation: '' }, question, this.#options.timing.command);
  }

  /** @returns undefined if the node is unreachable; the most cautious answer for one that cannot be parsed */
  async #call(to: NodeIdentity, question: Question, timeoutMs: number): Promise<Reply | undefined> {
    try {
      return read(Reply, await this.#send(to, question, timeoutMs)) ?? NOT_UNDERSTOOD;
    } catch (error) {
      if (error instanceof UnreachableError || error instanceof OutcomeUnknownError) return undefined;
      throw error;
    }
  }

  /** @throws UnreachableError, OutcomeUnknownError */
  async #send(to: NodeIdentity, question: Question, timeoutMs: number, { once = false } = {}): Promise<Buffer> {
    const request = { method: QUESTION, path: '/', headers: {}, body: Buffer.from(JSON.stringify(question)) };
    const answer = await this.#options.port.call(to, request, timeoutMs, { once });
    return answer.body;
  }
}

/** undefined for what a node of another version may send. */
function read<S extends TSchema>(schema: S, body: Buffer): Static<S> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return Value.Check(schema, value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
