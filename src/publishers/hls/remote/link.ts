import { setTimeout as delay } from 'node:timers/promises';
import type { Static, TSchema } from 'typebox';
import { isSameIncarnation, joinKey, OutcomeUnknownError, UnreachableError, type NodeIdentity } from '#cluster';
import type { Application } from '../../../core/application.ts';
import { KilnError, kilnError, type ErrorCode } from '../../../errors.ts';
import type { PeerCall, WithBytes } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { RelayTree } from '../../../directory/relay-tree.ts';
import type { StreamDirectory } from '../../../directory/stream-directory.ts';
import { StreamSender } from '../../../directory/stream-sender.ts';
import { unlessAborted } from '../../../lib/unless-aborted.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { callsOf, type PlaylistCalls } from '../sessions/wire.ts';

/** Limit of a call, beyond the time that it is held: players give up after 10 seconds. */
const TIMEOUT_MS = 5000;
/** Limit of a call of a parent, which itself waits for the owner. */
const PARENT_TIMEOUT_MS = TIMEOUT_MS + 1000;
/** Errors by which a parent refuses a stream, though it may be well. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>(['callUnknown', 'streamNotFound', 'relayedEnough']);
/** Pause between two attempts while no node answers for the stream. */
export const RETRY_MS = 500;

/** Time for which a request of a player is repeated while no node answers: after it, players ask again themselves. */
const AGAIN_MS = 4000;

/** A request without the fields that the link adds. */
type Fields<Q extends TSchema> = Omit<Static<Q>, 'vhost' | 'app' | 'stream' | 'holdMs' | 'relayOf'>;

/** Error while no node answers for the stream. */
export class AwayError extends Error {
  override readonly name = 'AwayError';

  /** The request may have been carried out. */
  get mayBeDone(): boolean {
    return this.cause !== undefined && !(this.cause instanceof UnreachableError);
  }
}

/** Error for a player while no node answers: streamInterrupted. */
export function interrupted(cause: AwayError): KilnError {
  return Object.assign(kilnError('streamInterrupted'), { cause });
}

class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/** The node that sends a stream. */
export interface Source {
  readonly node: NodeIdentity;
  /** Incarnation of the owner, if the node is a parent. */
  readonly relayOf?: string;
  readonly owner: NodeIdentity;
}

/** Key by which the relay tree ranks nodes for a stream. */
export function treeKey({ kind }: HlsForm, { vhost, name: app }: Application, output: string): string {
  return joinKey(kind, vhost.name, app, output);
}

export interface OwnerLinkOptions {
  readonly form: HlsForm;
  readonly calls: PeerCalls;
  readonly directory: Pick<StreamDirectory, 'locate' | 'mayMove'>;
  readonly application: Application;
  readonly name: string;
  readonly owner: NodeIdentity;
  readonly tree: Pick<RelayTree, 'self' | 'parent' | 'has' | 'unreachable'>;
  /** Called when no node has the stream any longer. */
  readonly onGone: () => void;
}

/** Sends requests about a stream of another node to its owner, or to the parent that `StreamSender` chooses. */
export class OwnerLink {
  readonly calls: PlaylistCalls;
  readonly #options: OwnerLinkOptions;
  readonly #sender: StreamSender;
  /** Aborted when another node has the stream. */
  #moved = new AbortController();
  /** Since when no owner is known, by the monotonic clock; the last one may still answer. */
  #lostAt: number | undefined;
  /** Next attempt to reach an owner that did not answer, by the monotonic clock; infinite during one, undefined after an answer. */
  #retryAt: number | undefined;

  constructor(options: OwnerLinkOptions) {
    this.calls = callsOf(options.form);
    this.#options = options;
    const { form, application, name, tree, owner } = options;
    this.#sender = new StreamSender(tree, treeKey(form, application, name), owner);
  }

  /** The last known owner. */
  get owner(): NodeIdentity {
    return this.#sender.owner;
  }

  /** The node that files come from, which are the same on every node. */
  get source(): Source {
    const { owner, next } = this.#sender;
    return next.role === 'parent' ? { node: next.node, relayOf: owner.incarnation, owner } : { node: owner, owner };
  }

  /** True while the owner does not answer: calls fail at once, except for one now and then. */
  get away(): boolean {
    return this.#retryAt !== undefined;
  }

  get lost(): boolean {
    return this.#lostAt !== undefined;
  }

  /** Milliseconds without a known owner. @param now by the monotonic clock */
  lostFor(now: number): number {
    return this.#lostAt === undefined ? 0 : now - this.#lostAt;
  }

  /** Follows the stream to its present owner; undefined when none is known. */
  follow(owner: NodeIdentity | undefined): void {
    if (owner === undefined) {
      this.#lostAt ??= performance.now();
      return;
    }
    this.#lostAt = undefined;
    if (isSameIncarnation(owner, this.owner)) return;
    this.#sender.moved(owner);
    this.#retryAt = undefined;
    this.#moved.abort();
    this.#moved = new AbortController();
  }

  /** Leaves a parent that drains, has gone or has restarted, and looks for a better node now and then. */
  tick(): void {
    const { node, role } = this.#sender.next;
    if (role === 'parent' && !this.#options.tree.has(node)) this.#sender.refused(node, 'failed');
    if (this.#sender.lookInMs === 0) this.#sender.look();
  }

  /**
   * Asks the owner, and once more if another node turns out to be the owner.
   * @param holdMs time for which the owner may hold the call
   * @throws AwayError, streamNotFound when no node has it, and the owner's own KilnError
   */
  async ask<Q extends TSchema, A extends TSchema>(
    call: PeerCall<Q, A>,
    fields: Fields<Q>,
    holdMs = 0,
  ): Promise<WithBytes<Static<A>>> {
    const asked = this.owner;
    try {
      return await this.#askOwner(call, fields, holdMs);
    } catch (error) {
      const moved = !isSameIncarnation(asked, this.owner);
      if (error instanceof NotHereError && !moved) await this.#relocate(asked);
      else if (!moved || !(error instanceof NotHereError || error instanceof AwayError)) throw error;
    }
    try {
      return await this.#askOwner(call, fields, holdMs);
    } catch (error) {
      throw error instanceof NotHereError ? this.#gone() : error;
    }
  }

  /**
   * Asks for data that is the same on every node: the parent, if there is one, and otherwise the owner.
   * @throws as `ask`
   */
  async fetch<Q extends TSchema, A extends TSchema>(
    call: PeerCall<Q, A>,
    fields: Fields<Q>,
    holdMs = 0,
  ): Promise<WithBytes<Static<A>>> {
    const { node, role } = this.#sender.next;
    if (role !== 'parent') return await this.ask(call, fields, holdMs);
    const answer = await this.#askParent(node, call, fields, holdMs);
    if (typeof answer === 'object') return answer;
    // the parent has reported the viewers of this node
    const ownAnswer = await this.ask(call, { ...fields, viewers: undefined } as Fields<Q>, holdMs);
    if (answer === 'waits') this.#sender.refused(node, 'waiting');
    return ownAnswer;
  }

  leave({ node }: Source): void {
    this.#sender.refused(node, 'failed');
  }

  /** Reports that the owner sends the stream to enough nodes. */
  ownerAtCapacity(): void {
    this.#sender.refused(this.owner, 'full');
  }

  /** Settles as a promise does, or resolves to undefined when the stream has another owner before that. */
  unlessMoved<T>(promise: Promise<T>): Promise<T | undefined> {
    return unlessAborted(promise, this.#moved.signal);
  }

  /**
   * @returns 'waits' while the parent does not get the stream itself, 'refused' when it does not send it
   * @throws KilnError of the owner about a file that it does not have
   */
  async #askParent<Q extends TSchema, A extends TSchema>(
    parent: NodeIdentity,
    call: PeerCall<Q, A>,
    fields: Fields<Q>,
    holdMs: number,
  ): Promise<WithBytes<Static<A>> | 'waits' | 'refused'> {
    const { calls } = this.#options;
    const { owner } = this;
    const request = { ...this.#request(fields, holdMs), relayOf: owner.incarnation } as Static<Q>;
    try {
      const asked = calls.callForBytes(parent, call, request, holdMs + PARENT_TIMEOUT_MS);
      const answer = await unlessAborted(asked, this.#sender.left);
      if (answer === undefined) return 'refused';
      this.#sender.sends(parent);
      if (isSameIncarnation(owner, this.owner)) this.#retryAt = undefined;
      return answer;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const { code, cause } = error;
      if (code === 'fileNotFound' || code === 'playlistOverdue') throw error;
      // the parent may not know the new owner yet, or not reach it: the owner itself knows more
      if (cause === undefined && !REFUSALS.has(code)) return 'waits';
      this.#sender.refused(parent, cause instanceof UnreachableError ? 'unreachable' : 'failed');
      return 'refused';
    }
  }

  /**
   * Asks the owner. One that did not answer is asked once in a while, without a hold.
   * @throws AwayError, NotHereError, and the owner's own KilnError
   */
  async #askOwner<Q extends TSchema, A extends TSchema>(call: PeerCall<Q, A>, fields: Fields<Q>, holdMs: number) {
    const { owner, away } = this;
    if (performance.now() < (this.#retryAt ?? 0)) throw new AwayError(`node ${owner.id} does not answer`);
    if (away) this.#retryAt = Infinity;
    try {
      return await this.#call(owner, call, fields, away ? 0 : holdMs);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      // a node that does not know the call has no such stream
      if (error.code === 'streamNotFound' || error.code === 'callUnknown') throw new NotHereError();
      if (error.code === 'ownerSilent') throw new AwayError(error.message, { cause: error });
      throw error;
    }
  }

  /** @throws AwayError, and what the owner does */
  async #call<Q extends TSchema, A extends TSchema>(
    owner: NodeIdentity,
    call: PeerCall<Q, A>,
    fields: Fields<Q>,
    holdMs: number,
  ) {
    const { calls } = this.#options;
    const request = this.#request(fields, holdMs) as Static<Q>;
    const begun = performance.now();
    try {
      const answer = await calls.callForBytes(owner, call, request, holdMs + TIMEOUT_MS);
      this.#sender.sends(owner);
      if (isSameIncarnation(owner, this.owner)) this.#retryAt = undefined;
      return answer;
    } catch (error) {
      const { cause, message } = error as Error;
      if (!(cause instanceof UnreachableError || cause instanceof OutcomeUnknownError)) {
        if (isSameIncarnation(owner, this.owner)) this.#retryAt = undefined;
        throw error;
      }
      const now = performance.now();
      // an owner that holds the call, or has much to send, may be late without being unreachable
      const isLate = holdMs > 0 && now - begun > holdMs;
      if (isSameIncarnation(owner, this.owner) && !isLate) {
        this.#retryAt = now + RETRY_MS;
        this.#sender.refused(owner, 'unreachable');
      }
      throw new AwayError(message, { cause });
    }
  }

  /**
   * Repeats what a player asks for while no node answers, which may be for a moment, for some seconds at most.
   * @throws what `attempt` does; `interrupted` at the end of that time
   */
  async whileAway<T>(attempt: () => Promise<T>): Promise<T> {
    for (const until = performance.now() + AGAIN_MS; ;) {
      try {
        return await attempt();
      } catch (error) {
        const isAway = error instanceof KilnError && error.cause instanceof AwayError;
        if (!isAway || performance.now() >= until) throw error;
      }
      await this.unlessMoved(delay(RETRY_MS, undefined, { ref: false }));
    }
  }

  #request<F extends object>(fields: F, holdMs: number) {
    const { application, name: stream } = this.#options;
    const names = { vhost: application.vhost.name, app: application.name, stream };
    return { ...fields, ...names, ...(holdMs > 0 && { holdMs }) };
  }

  /** @throws AwayError when the node is leaving, and another may have the stream soon; streamNotFound when no other node has it */
  async #relocate(asked: NodeIdentity): Promise<void> {
    const { directory, application, name } = this.#options;
    const location = await directory.locate(application, name);
    if (location !== undefined) this.follow(location.owner);
    if (!isSameIncarnation(asked, this.owner)) return;
    if (!directory.mayMove(application, name, asked)) throw this.#gone();
    this.#retryAt = performance.now() + RETRY_MS;
    throw new AwayError(`node ${asked.id} is stopping, and has the stream no more`);
  }

  #gone(): KilnError {
    const { application, name, onGone } = this.#options;
    onGone();
    return kilnError('streamNotFound', `${application.internalName}/${name}`);
  }
}

/** Tests for the same node in the same role, with the same owner. */
export function isSameSource(one: Source, other: Source): boolean {
  return isSameIncarnation(one.node, other.node) && one.relayOf === other.relayOf;
}
