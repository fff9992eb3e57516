import type { Duplex } from 'node:stream';
import { UnavailableError, UnreachableError, type Cluster } from '#cluster';
import type { HlsForm } from '../package/hls-form.ts';
import { FeedConnection, type FeedConnectionOptions } from './feed-connection.ts';
import { ALIVE_MS, feedPath } from './feed-wire.ts';
import { isSameSource, type Source } from './link.ts';
import type { WantedChunklist } from './rendition.ts';

const CONNECT_TIMEOUT_MS = 1500;
const LATE_MS = ALIVE_MS + 500;
/** Time for which calls replace a connection that failed. */
const PAUSE_MS = 5000;

export interface FeedOptions extends FeedConnectionOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'connect'>;
  readonly onFault: (error: unknown) => void;
}

/**
 * Receives chunklists that players wait for, and the parts that they announce, on one connection without a request for each.
 * Where there is no such connection, calls are made instead, which also give the reason.
 */
export class Feed {
  readonly #options: FeedOptions;
  #connection: FeedConnection | undefined;
  #opening = false;
  /** Incarnation of a node that could not be connected to or sent nothing; `until` then no new attempt. */
  #failed: { readonly incarnation: string; readonly until: number } | undefined;
  /** When the sending node is late, by the monotonic clock. */
  #expected: { readonly source: Source; readonly until: number } | undefined;
  #closed = false;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** True when the sending node is silent and has answered no call since. */
  get late(): boolean {
    const expected = this.#expected;
    return (
      expected !== undefined &&
      performance.now() > expected.until &&
      isSameSource(expected.source, this.#options.link.source)
    );
  }

  heard(): void {
    this.#expected = undefined;
  }

  /**
   * Waits for a chunklist to be sent, for `holdMs` or until the sender would be late, whichever is longer.
   * @returns false where a call is needed: it is not followed, is no longer sent, or nothing came
   */
  async hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean> {
    const connection = this.#current();
    return connection !== undefined && (await connection.hold(file, wanted, Math.max(holdMs, LATE_MS)));
  }

  sends(file: string): boolean {
    return this.#connection?.isFrom(this.#options.link.source) === true && this.#connection.sends(file);
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    if (this.#connection !== undefined && !this.#connection.isFrom(this.#options.link.source)) this.#drop();
    if (this.#connection?.tick(now) === false) this.#drop();
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** Connection to the present source. Where there is none, starts to open one. */
  #current(): FeedConnection | undefined {
    const { source } = this.#options.link;
    if (this.#connection?.isFrom(source) === true) return this.#connection;
    if (this.#connection !== undefined) this.#drop();
    if (!this.#opening && !this.#closed && !this.#isPaused(source)) void this.#open(source);
    return undefined;
  }

  #isPaused({ node }: Source): boolean {
    return this.#failed?.incarnation === node.incarnation && performance.now() < this.#failed.until;
  }

  /** Never throws: without a connection, calls are made. */
  async #open(source: Source): Promise<void> {
    const { cluster, form } = this.#options;
    this.#opening = true;
    try {
      const stream = await cluster.connect(source.node, feedPath(form), CONNECT_TIMEOUT_MS);
      if (this.#closed || this.#connection !== undefined) return void stream.destroy();
      this.#connection = this.#take(stream, source);
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof UnavailableError)) this.#options.onFault(error);
      this.#pause(source);
    } finally {
      this.#opening = false;
    }
  }

  #take(stream: Duplex, source: Source): FeedConnection {
    const connection: FeedConnection = new FeedConnection(stream, source, this.#options, {
      onHeard: () => (this.#expected = { source, until: performance.now() + LATE_MS }),
      onFailed: () => {
        if (this.#connection === connection) this.#connection = undefined;
        this.#pause(source);
        if (this.late) this.#options.link.leave(source);
        else this.#expected = undefined;
      },
    });
    return connection;
  }

  #pause({ node: { incarnation } }: Source): void {
    this.#failed = { incarnation, until: performance.now() + PAUSE_MS };
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#expected = undefined;
    connection?.close();
  }
}
