import type { Static, TSchema } from 'typebox';
import type { Cluster, NodeIdentity } from '#cluster';
import { KilnError } from '../errors.ts';
import type { PeerCall } from './peer-call.ts';
import type { PeerCalls } from './peer-calls.ts';

/** Short, because lists must not wait until a node that does not answer counts as lost. */
const TIMEOUT_MS = 2000;

export interface Reply<T> {
  readonly node: NodeIdentity;
  readonly answer: T | undefined;
  /** Reason of the failure: the node rejected the call, is of another version, cannot be reached or does not answer in time. */
  readonly error: KilnError | undefined;
}

/** Calls to the other nodes of the cluster, made simultaneously. */
export class OtherNodes {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly #calls: PeerCalls;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes'>, calls: PeerCalls) {
    this.#cluster = cluster;
    this.#calls = calls;
  }

  get self(): NodeIdentity {
    return this.#cluster.self;
  }

  /** The other nodes that are alive. */
  get present(): readonly NodeIdentity[] {
    const { self } = this.#cluster;
    return this.#cluster.nodes().filter(({ id, state }) => id !== self.id && state !== 'lost');
  }

  /** Calls every node that is alive. Never rejects for a missing answer. */
  ask<Q extends TSchema, A extends TSchema>(
    call: PeerCall<Q, A>,
    request: Static<Q>,
    timeoutMs = TIMEOUT_MS,
  ): Promise<Reply<Static<A>>[]> {
    return Promise.all(this.present.map((node) => this.askOne(node, call, request, timeoutMs)));
  }

  /** Calls one node. Never rejects for a missing answer. */
  async askOne<Q extends TSchema, A extends TSchema>(
    node: NodeIdentity,
    call: PeerCall<Q, A>,
    request: Static<Q>,
    timeoutMs = TIMEOUT_MS,
  ): Promise<Reply<Static<A>>> {
    try {
      return { node, answer: await this.#calls.call(node, call, request, timeoutMs), error: undefined };
    } catch (error) {
      if (error instanceof KilnError) return { node, answer: undefined, error };
      throw error;
    }
  }
}
