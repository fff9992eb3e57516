import { OutcomeUnknownError, UnreachableError, type Cluster, type NodeIdentity, type PeerResponse } from '#cluster';
import { KilnError, type ErrorCode } from '../../../errors.ts';
import { ERROR_HEADER, pathOf, type StreamPath, type Wanted } from './wire.ts';

export interface Call {
  readonly what: Wanted;
  readonly file: string;
  readonly query?: URLSearchParams;
  /** Makes it a POST. */
  readonly body?: Buffer;
  readonly timeoutMs: number;
}

/** Nobody answers for the stream now. */
export class AwayError extends Error {
  override readonly name = 'AwayError';
}

/** Who is asked does not have the stream. */
export class NotHereError extends Error {
  override readonly name = 'NotHereError';
}

/** The way to the node that has a stream. */
export class OwnerLink {
  readonly #cluster: Pick<Cluster, 'forward'>;
  readonly #path: StreamPath;
  readonly #listeners = new Set<() => void>();
  #owner: NodeIdentity;
  /** Nobody is known to have the stream since, by the monotonic clock; its last owner may still answer for it. */
  #lostAt: number | undefined;
  #unreachable = false;

  constructor(cluster: Pick<Cluster, 'forward'>, path: StreamPath, owner: NodeIdentity) {
    this.#cluster = cluster;
    this.#path = path;
    this.#owner = owner;
  }

  /** The last that is known. */
  get owner(): NodeIdentity {
    return this.#owner;
  }

  /** Nobody answers for the stream, as far as is known. */
  get away(): boolean {
    return this.#unreachable;
  }

  /** Milliseconds for which nobody has had the stream. */
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
   * What the owner answers: 200, or 201 for what is not there yet.
   * @throws AwayError, NotHereError, and the owner's own KilnError
   */
  async ask({ what, file, query, body, timeoutMs }: Call): Promise<PeerResponse> {
    const owner = this.#owner;
    const request = {
      method: body === undefined ? 'GET' : 'POST', path: pathOf(this.#path, what, file, query), headers: {}, body: body ?? Buffer.alloc(0),
    };
    const response = await this.#forward(owner, request, timeoutMs);
    const { status, headers } = response;
    if (status === 200 || status === 201) return response;
    const code = headers[ERROR_HEADER];
    if (code === 'streamNotFound' || (status === 404 && code === undefined)) throw new NotHereError();
    if (code === undefined) throw new AwayError(`node ${owner.id} answers with ${status}`);
    throw new KilnError(code as ErrorCode, status, response.body.toString());
  }

  /** Tells when another node has the stream. Returns its undo. */
  onMoved(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What comes of a promise, or undefined when another node has the stream before that. */
  unlessMoved<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const undo = this.onMoved(() => resolve(undefined));
      promise.then(resolve, reject).finally(undo);
    });
  }

  async #forward(owner: NodeIdentity, request: Parameters<Cluster['forward']>[1], timeoutMs: number): Promise<PeerResponse> {
    try {
      const response = await this.#cluster.forward(owner, request, timeoutMs);
      if (isSame(owner, this.#owner)) this.#unreachable = false;
      return response;
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof OutcomeUnknownError)) throw error;
      if (isSame(owner, this.#owner)) this.#unreachable = true;
      throw new AwayError(error.message, { cause: error });
    }
  }
}

function isSame(one: NodeIdentity, other: NodeIdentity): boolean {
  return one.id === other.id && one.incarnation === other.incarnation;
}
