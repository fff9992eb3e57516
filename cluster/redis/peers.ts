import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';
import { OutcomeUnknownError, UnreachableError } from '../errors.ts';
import type { PeerPort } from '../peer/port.ts';
import type { NodeIdentity, PeerHandler, PeerRequest, PeerResponse } from '../types.ts';
import type { Nodes, Peer } from './nodes.ts';
import type { Timing } from './timing.ts';

/** Questions of the cluster itself; everything else is for the handler that was set. */
const QUESTION = 'kiln:peer';

/** Keys with the fences of their claims. */
type Held = readonly (readonly [key: string, fence: number])[];

const Question = Type.Union([
  Type.Object({ about: Type.Literal('store'), held: Type.Array(Type.Tuple([Type.String(), Type.Number()])) }),
  Type.Object({ about: Type.Literal('key'), key: Type.String() }),
]);
type Question = { readonly about: 'store'; readonly held: Held } | { readonly about: 'key'; readonly key: string };

const Reply = Type.Object({
  withoutStore: Type.Boolean(),
  /** About a key: who asks should not have it. */
  holds: Type.Boolean(),
  /** About the store: what this node has by a later claim. */
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
  /** Whether this node has a key, or knows who has it. */
  readonly holds: (key: string) => boolean;
  /** Of what another holds, the keys that this node has by a later claim. */
  readonly superseding: (held: Held, by: NodeIdentity) => string[];
}

/**
 * What nodes ask each other when Redis is away. A holder goes on only if all who were alive say that they have no Redis
 * either; who says so claims nothing new for the time to live from then on, even when Redis is back at once. So what
 * the holder has stays its own until it asks again.
 */
export class Peers {
  readonly #options: PeersOptions;
  #handler: PeerHandler | undefined;
  #promised = -Infinity;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  serve(handler: PeerHandler): void {
    this.#handler = handler;
  }

  /** Until when this node claims nothing new, on the monotonic clock. */
  get promised(): number {
    return this.#promised;
  }

  /** Whether this node may claim what others have had. */
  get mayClaim(): boolean {
    return performance.now() >= this.#promised;
  }

  /**
   * Asks every other node whether it is without Redis, too. One that was lost need not answer, but what it says counts: it
   * may be back, and have claimed something, before this node has heard of it.
   * @param held what this node holds
   * @returns what others have by later claims; undefined when one has Redis, or was alive and cannot be reached
   */
  async allWithoutStore(held: Held): Promise<ReadonlySet<string> | undefined> {
    const question = { about: 'store', held } as const;
    const others = this.#options.nodes.peers() ?? [];
    const replies = await Promise.all(others.map((node) => this.#ask(node, question)));
    if (!replies.every((reply, at) => reply?.withoutStore ?? others[at]?.lost)) return undefined;
    return new Set(replies.flatMap((reply) => reply?.superseded ?? []));
  }

  /**
   * Whether no other node that can be reached knows of a holder of the key. Where it is not known who the others are,
   * nobody can deny it.
   */
  async allDeny(key: string): Promise<boolean> {
    const peers = this.#options.nodes.peers();
    if (peers === undefined) return false;
    const replies = await Promise.all(peers.map((node) => this.#ask(node, { about: 'key', key })));
    return replies.every((reply) => reply === undefined || !reply.holds);
  }

  async answer(request: PeerRequest, from: NodeIdentity): Promise<PeerResponse> {
    if (request.method !== QUESTION) {
      return this.#handler?.(request, from) ?? { status: 503, headers: {}, body: Buffer.alloc(0) };
    }
    const question = read(Question, request.body);
    if (question === undefined) return { status: 400, headers: {}, body: Buffer.alloc(0) };
    const withoutStore = this.#options.isDegraded();
    if (question.about === 'store' && withoutStore) this.#promised = performance.now() + this.#options.timing.ttl;
    const reply: Reply = {
      withoutStore,
      holds: question.about === 'key' && this.#options.holds(question.key),
      superseded: question.about === 'store' ? this.#options.superseding(question.held, from) : [],
    };
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(reply)) };
  }

  /**
   * Asks whichever incarnation of a node is there: one that was restarted since Redis was there last knows what it has.
   * @returns undefined when the node cannot be reached; the worst of all answers for one that cannot be understood
   */
  async #ask({ id }: Peer, question: Question): Promise<Reply | undefined> {
    const to = { id, incarnation: '' };
    const body = Buffer.from(JSON.stringify(question));
    const { port, timing } = this.#options;
    try {
      const answer = await port.call(to, { method: QUESTION, path: '/', headers: {}, body }, timing.command);
      return read(Reply, answer.body) ?? NOT_UNDERSTOOD;
    } catch (error) {
      if (error instanceof UnreachableError || error instanceof OutcomeUnknownError) return undefined;
      throw error;
    }
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
