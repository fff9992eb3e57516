import type { Static, TSchema } from 'typebox';
import { OutcomeUnknownError, UnreachableError, type NodeIdentity } from '#cluster';
import type { Application } from '../../../core/application.ts';
import { KilnError, kilnError, type ErrorCode } from '../../../errors.ts';
import type { PeerCall, WithBytes } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { StreamDirectory } from '../../../directory/stream-directory.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { Upstream } from './upstream.ts';
import { Interrupts } from './interrupts.ts';
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

/** What the way to an owner is made of. */
export interface OwnerLinkOptions {
  readonly form: HlsForm;
  readonly calls: PeerCalls;
  readonly directory: Pick<StreamDirectory, 'locate' | 'mayMove'>;
  readonly application: Application;
  /** Of the output stream, as viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  readonly upstream: Upstream;
  /** Called when no node has the stream any more. */
  readonly onGone: () => void;
}

/** The way to the node that has a stream. */
export class OwnerLink {
  /** What it can be asked. */
  readonly calls: PlaylistCalls;
  readonly #options: OwnerLinkOptions;
  readonly #moved = new Interrupts();
  #owner: NodeIdentity;
  /** Nobody is known to have the stream since, by the monotonic clock; its last owner may still answer for it. */
  #lostAt: number | undefined;
  #unreachable = false;
  /** Of the last attempt to reach who did not answer, by the monotonic clock. */
  #triedAt = 0;
  #trying = false;

  constructor(options: OwnerLinkOptions) {
    this.calls = callsOf(options.form);
    this.#options = options;
    this.#owner = options.owner;
  }

  /** The last that is known. */
  get owner(): NodeIdentity {
    return this.#owner;
  }

  /** Where what all nodes have alike comes from: the owner, or a node that has it from there. */
  get source(): Source {
    const owner = this.#owner;
    const parent = this.#options.upstream.parent(owner);
    return parent === undefined ? { node: owner, owner } : { node: parent, relayOf: owner.incarnation, owner };
  }

  /** Nobody answers for the stream, as far as is known: calls fail at once, but for one now and then. */
  get away(): boolean {
    return this.#unreachable;
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
    if (isSameLife(owner, this.#owner)) return;
    this.#owner = owner;
    this.#unreachable = false;
    this.#moved.fire();
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
    const asked = this.#owner;
    try {
      return await this.#askOwner(call, fields, holdMs);
    } catch (error) {
      const moved = !isSameLife(asked, this.#owner);
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
    const parent = this.#options.upstream.parent(this.#owner);
    if (parent === undefined) return await this.ask(call, fields, holdMs);
    const answer = await this.#askParent(parent, call, fields, holdMs);
    // viewers here are among those that the parent has told of
    return answer ?? (await this.ask(call, { ...fields, viewers: undefined } as Fields<Q>, holdMs));
  }

  /** The node that the stream comes from is silent. */
  leave({ node }: Source): void {
    this.#options.upstream.shun(node);
  }

  /** The owner has told that it sends the stream to enough nodes. */
  ownerAtCapacity(): void {
    this.#options.upstream.ownerAtCapacity();
  }

  /** What comes of a promise, or undefined when another node has the stream before that. */
  unlessMoved<T>(promise: Promise<T>): Promise<T | undefined> {
    return this.#moved.unlessFired(promise);
  }

  /** @returns undefined when another node is to be asked @throws what the owner says of what it does not have */
  async #askParent<Q extends TSchema, A extends TSchema>(
    parent: NodeIdentity,
    call: PeerCall<Q, A>,
    fields: Fields<Q>,
    holdMs: number,
  ): Promise<WithBytes<Static<A>> | undefined> {
    const { calls, upstream } = this.#options;
    const owner = this.#owner;
    const request = { ...this.#request(fields, holdMs), relayOf: owner.incarnation } as Static<Q>;
    try {
      const answer = await upstream.unlessLeft(calls.callForBytes(parent, call, request, holdMs + PARENT_TIMEOUT_MS));
      if (answer !== undefined && isSameLife(owner, this.#owner)) this.#unreachable = false;
      return answer;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const { code, cause } = error;
      if (code === 'fileNotFound' || code === 'playlistOverdue') throw error;
      // otherwise it may be about to hear of the owner, or not reach it: the owner itself tells more
      if (cause !== undefined || REFUSALS.has(code)) upstream.shun(parent);
      return undefined;
    }
  }

  /** @throws AwayError, NotHereError, and the owner's own KilnError */
  async #askOwner<Q extends TSchema, A extends TSchema>(call: PeerCall<Q, A>, fields: Fields<Q>, holdMs: number) {
    const owner = this.#owner;
    try {
      return await (this.#unreachable ? this.#try(owner, call, fields) : this.#call(owner, call, fields, holdMs));
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      // a node that does not know the call has no such stream
      if (error.code === 'streamNotFound' || error.code === 'callUnknown') throw new NotHereError();
      if (error.code === 'ownerSilent') throw new AwayError(error.message, { cause: error });
      throw error;
    }
  }

  /** Asks who did not answer before, if nobody else does, or has done so just now. */
  async #try<Q extends TSchema, A extends TSchema>(owner: NodeIdentity, call: PeerCall<Q, A>, fields: Fields<Q>) {
    if (this.#trying || performance.now() - this.#triedAt < RETRY_MS)
      throw new AwayError(`node ${owner.id} does not answer`);
    this.#trying = true;
    try {
      return await this.#call(owner, call, fields, 0);
    } finally {
      this.#trying = false;
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
      if (isSameLife(owner, this.#owner)) this.#unreachable = false;
      return answer;
    } catch (error) {
      const { cause, message } = error as Error;
      if (!(cause instanceof UnreachableError || cause instanceof OutcomeUnknownError)) {
        if (isSameLife(owner, this.#owner)) this.#unreachable = false;
        throw error;
      }
      const now = performance.now();
      // of an owner that has something to wait for, or much to send, that it is late does not tell enough
      const isLate = holdMs > 0 && now - begun > holdMs;
      if (isSameLife(owner, this.#owner) && !isLate) {
        this.#unreachable = true;
        this.#triedAt = now;
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
    if (!isSameLife(asked, this.#owner)) return;
    if (!directory.mayMove(application, name, asked)) throw this.#gone();
    this.#unreachable = true;
    this.#triedAt = performance.now();
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
  return isSameLife(one.node, other.node) && one.relayOf === other.relayOf;
}

/** Whether two identities are of one run of one node. */
export function isSameLife(one: NodeIdentity, other: NodeIdentity): boolean {
  return one.id === other.id && one.incarnation === other.incarnation;
}
