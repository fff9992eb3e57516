import {
  OutcomeUnknownError,
  UnreachableError,
  type Cluster,
  type NodeIdentity,
  type PeerRequest,
  type PeerResponse,
} from '#cluster';
import type { Application } from '../../../core/application.ts';
import { KilnError, kilnError, type ErrorCode } from '../../../errors.ts';
import type { StreamDirectory } from '../../../origins/stream-directory.ts';
import type { HlsForm } from '../form.ts';
import { ERROR_HEADER, pathOf, type Wanted } from './wire.ts';

/** How long a call may take, beyond the time that it is held: players give up after 10 seconds. */
const TIMEOUT_MS = 5000;
/** Between two attempts while nobody answers for the stream. */
export const RETRY_MS = 500;

/** What the owner of a stream is asked. */
export interface Call {
  readonly what: Wanted;
  readonly file: string;
  readonly query?: URLSearchParams;
  /** Makes it a POST. */
  readonly body?: Buffer;
  /** Milliseconds that the owner may hold it for what is to come. */
  readonly holdMs?: number;
}

/** Nobody answers for the stream now. */
export class AwayError extends Error {
  override readonly name = 'AwayError';
}

/** Who is asked does not have the stream. */
class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/** What the way to an owner is made of. */
export interface OwnerLinkOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'forward'>;
  readonly directory: Pick<StreamDirectory, 'locate'>;
  readonly application: Application;
  /** Of the output stream, as viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  /** Called when no node has the stream any more. */
  readonly onGone: () => void;
}

/** The way to the node that has a stream. */
export class OwnerLink {
  readonly #options: OwnerLinkOptions;
  readonly #listeners = new Set<() => void>();
  #owner: NodeIdentity;
  /** Nobody is known to have the stream since, by the monotonic clock; its last owner may still answer for it. */
  #lostAt: number | undefined;
  #unreachable = false;
  /** Of the last attempt to reach who did not answer, by the monotonic clock. */
  #triedAt = 0;
  #trying = false;

  constructor(options: OwnerLinkOptions) {
    this.#options = options;
    this.#owner = options.owner;
  }

  /** The last that is known. */
  get owner(): NodeIdentity {
    return this.#owner;
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
    if (isSame(owner, this.#owner)) return;
    this.#owner = owner;
    this.#unreachable = false;
    for (const listener of [...this.#listeners]) listener();
  }

  /**
   * What whoever has the stream answers, also when that is another node than was thought: 200, or 201 for what is not
   * there yet.
   * @throws AwayError, streamNotFound when no node has it, and the owner's own KilnError
   */
  async ask(call: Call): Promise<PeerResponse> {
    const asked = this.#owner;
    try {
      return await this.#askOwner(call);
    } catch (error) {
      const moved = !isSame(asked, this.#owner);
      if (error instanceof NotHereError && !moved) await this.#relocate(asked);
      else if (!moved || !(error instanceof NotHereError || error instanceof AwayError)) throw error;
    }
    try {
      return await this.#askOwner(call);
    } catch (error) {
      throw error instanceof NotHereError ? this.#gone() : error;
    }
  }

  /** What comes of a promise, or undefined when another node has the stream before that. */
  unlessMoved<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const listener = (): void => resolve(undefined);
      this.#listeners.add(listener);
      promise.then(resolve, reject).finally(() => this.#listeners.delete(listener));
    });
  }

  /** @throws AwayError, NotHereError, and the owner's own KilnError */
  async #askOwner(call: Call): Promise<PeerResponse> {
    const owner = this.#owner;
    const response = await (this.#unreachable ? this.#try(owner, call) : this.#forward(owner, call));
    const { status, headers } = response;
    if (status === 200 || status === 201) return response;
    const code = headers[ERROR_HEADER];
    if (code === 'streamNotFound' || (status === 404 && code === undefined)) throw new NotHereError();
    if (code === undefined) throw new AwayError(`node ${owner.id} answers with ${status}`);
    throw new KilnError(code as ErrorCode, status, response.body.toString());
  }

  /** Asks who did not answer before, if nobody else does, or has done so just now. */
  async #try(owner: NodeIdentity, call: Call): Promise<PeerResponse> {
    if (this.#trying || performance.now() - this.#triedAt < RETRY_MS)
      throw new AwayError(`node ${owner.id} does not answer`);
    this.#trying = true;
    try {
      return await this.#forward(owner, { ...call, holdMs: 0 });
    } finally {
      this.#trying = false;
    }
  }

  async #forward(owner: NodeIdentity, call: Call): Promise<PeerResponse> {
    const { holdMs = 0 } = call;
    const begun = performance.now();
    try {
      const response = await this.#options.cluster.forward(owner, this.#requestOf(call), holdMs + TIMEOUT_MS);
      if (isSame(owner, this.#owner)) this.#unreachable = false;
      return response;
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof OutcomeUnknownError)) throw error;
      const now = performance.now();
      // of an owner that has something to wait for, or much to send, that it is late does not tell enough
      const isLate = holdMs > 0 && now - begun > holdMs;
      if (isSame(owner, this.#owner) && !isLate) {
        this.#unreachable = true;
        this.#triedAt = now;
      }
      throw new AwayError(error.message, { cause: error });
    }
  }

  #requestOf({ what, file, query, body, holdMs = 0 }: Call): PeerRequest {
    const {
      application: { vhost, name: app },
      name: stream,
    } = this.#options;
    const whole = new URLSearchParams(query);
    if (holdMs > 0) whole.set('hold', String(holdMs));
    return {
      method: body === undefined ? 'GET' : 'POST',
      path: pathOf(this.#options.form, { vhost: vhost.name, app, stream }, what, file, whole),
      headers: {},
      body: body ?? Buffer.alloc(0),
    };
  }

  /** @throws streamNotFound when nobody else has it than who was asked */
  async #relocate(asked: NodeIdentity): Promise<void> {
    const { directory, application, name } = this.#options;
    const location = await directory.locate(application, name);
    if (location !== undefined) this.follow(location.owner);
    if (isSame(asked, this.#owner)) throw this.#gone();
  }

  #gone(): KilnError {
    const { application, name, onGone } = this.#options;
    onGone();
    return kilnError('streamNotFound', `${application.internalName}/${name}`);
  }
}

function isSame(one: NodeIdentity, other: NodeIdentity): boolean {
  return one.id === other.id && one.incarnation === other.incarnation;
}
