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

/** How long a call may take, beyond the time that it is held: players give up after 10 seconds. */
const TIMEOUT_MS = 5000;
/** The same of a node that has the stream from its owner: longer than that waits for the owner itself. */
const PARENT_TIMEOUT_MS = TIMEOUT_MS + 1000;
/** What a node says that cannot give a stream to this one, though it may be well. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>(['callUnknown', 'streamNotFound', 'relayedEnough']);
/** Between two attempts while nobody answers for the stream. */
export const RETRY_MS = 500;

/** What is asked, without what the link adds: the stream, and for how long the call may be held. */
type Fields<Q extends TSchema> = Omit<Static<Q>, 'vhost' | 'app' | 'stream' | 'holdMs' | 'relayOf'>;

/** Nobody answers for the stream now. */
export class AwayError extends Error {
  override readonly name = 'AwayError';

  /** Who was asked may have done what it was asked for. */
  get mayBeDone(): boolean {
    return this.cause !== undefined && !(this.cause instanceof UnreachableError);
  }
}

/** Who is asked does not have the stream. */
class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/** Where a stream comes from. */
export interface Source {
  readonly node: NodeIdentity;
  /** The owner, by incarnation, where another node has the stream from it. */
  readonly relayOf?: string;
  readonly owner: NodeIdentity;
}

/** Key by which the relay tree ranks nodes for a stream. */
export function treeKey({ kind }: HlsForm, { vhost, name: app }: Application, output: string): string {
  return joinKey(kind, vhost.name, app, output);
}

/** What the way to an owner is made of. */
export interface OwnerLinkOptions {
  readonly form: HlsForm;
  readonly calls: PeerCalls;
  readonly directory: Pick<StreamDirectory, 'locate' | 'mayMove'>;
  readonly application: Application;
  /** Of the output stream, as viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  readonly tree: Pick<RelayTree, 'self' | 'parent' | 'has' | 'unreachable'>;
  /** Called when no node has the stream any more. */
  readonly onGone: () => void;
}

/** The way to the node that has a stream. */
export class OwnerLink {
  /** What it can be asked. */
  readonly calls: PlaylistCalls;
  readonly #options: OwnerLinkOptions;
  readonly #sender: StreamSender;
  /** Aborted when another node has the stream. */
  #moved = new AbortController();
  /** Nobody is known to have the stream since, by the monotonic clock; its last owner may still answer for it. */
  #lostAt: number | undefined;
  /** Next attempt to reach an owner that did not answer, by the monotonic clock; infinite during one, undefined after an answer. */
  #retryAt: number | undefined;

  constructor(options: OwnerLinkOptions) {
    this.calls = callsOf(options.form);
    this.#options = options;
    const { form, application, name, tree, owner } = options;
    this.#sender = new StreamSender(tree, treeKey(form, application, name), owner);
  }

  /** The last that is known. */
  get owner(): NodeIdentity {
    return this.#sender.owner;
  }

  /** Where what all nodes have alike comes from: the owner, or a node that has it from there. */
  get source(): Source {
    const { owner, next } = this.#sender;
    return next.role === 'parent' ? { node: next.node, relayOf: owner.incarnation, owner } : { node: owner, owner };
  }

  /** Nobody answers for the stream, as far as is known: calls fail at once, but for one now and then. */
  get away(): boolean {
    return this.#retryAt !== undefined;
  }

  /** Nobody has the stream, as far as is known. */
  get lost(): boolean {
    return this.#lostAt !== undefined;
  }

  /** Milliseconds for which nobody has had the stream. @param now by the monotonic clock */
  lostFor(now: number): number {
    return this.#lostAt === undefined ? 0 : now - this.#lostAt;
  }

  /** Who has the stream by now. */
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
   * What whoever has the stream answers, also when that is another node than was thought.
   * @param holdMs so long it may hold the call for what is to come
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
   * The same of what any node tells alike that has it from the owner: one of those is asked where the owner has enough to do.
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
    // viewers here are among those that the parent has told of
    const ownAnswer = await this.ask(call, { ...fields, viewers: undefined } as Fields<Q>, holdMs);
    if (answer === 'waits') this.#sender.refused(node, 'waiting');
    return ownAnswer;
  }

  /** The node that the stream comes from is silent. */
  leave({ node }: Source): void {
    this.#sender.refused(node, 'failed');
  }

  /** The owner has told that it sends the stream to enough nodes. */
  ownerAtCapacity(): void {
    this.#sender.refused(this.owner, 'full');
  }

  /** What comes of a promise, or undefined when another node has the stream before that. */
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
      // otherwise it may be about to hear of the owner, or not reach it: the owner itself tells more
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
      // of an owner that has something to wait for, or much to send, that it is late does not tell enough
      const isLate = holdMs > 0 && now - begun > holdMs;
      if (isSameIncarnation(owner, this.owner) && !isLate) {
        this.#retryAt = now + RETRY_MS;
        this.#sender.refused(owner, 'unreachable');
      }
      throw new AwayError(message, { cause });
    }
  }

  #request<F extends object>(fields: F, holdMs: number) {
    const { application, name: stream } = this.#options;
    const names = { vhost: application.vhost.name, app: application.name, stream };
    return { ...fields, ...names, ...(holdMs > 0 && { holdMs }) };
  }

  /** @throws AwayError when who was asked is leaving, and another may have it soon; streamNotFound when nobody else has it */
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

/** Whether a stream comes from the same node, and for that from the same owner. */
export function isSameSource(one: Source, other: Source): boolean {
  return isSameIncarnation(one.node, other.node) && one.relayOf === other.relayOf;
}
