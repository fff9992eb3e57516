import type { Duplex } from 'node:stream';
import { UnavailableError, UnreachableError, type Cluster, type NodeIdentity } from '#cluster';
import { Watchdog } from '../../../core/watchdog.ts';
import { readJson } from '../../../origins/json.ts';
import { FrameError, FrameReader, writeFrame } from '../../../origins/peer-frames.ts';
import type { HlsForm } from '../form.ts';
import type { Media } from '../answer.ts';
import { isSameLife, type OwnerLink, type Source } from './link.ts';
import { ALIVE_MS, FEED_LIMITS, feedPath, FeedNews, MAX_FOLLOWED, type FeedRequest } from './feed-wire.ts';
import type { WantedChunklist } from './rendition.ts';
import type { ChunklistState, StreamPath } from './wire.ts';

const CONNECT_TIMEOUT_MS = 1500;
/** The other node says something every second: it is late then, and given up. */
const LATE_MS = ALIVE_MS + 500;
const SILENCE_MS = 2500;
/** Of a node that did not send anything calls are made for so long. */
const PAUSE_MS = 5000;
/** What nobody waits for in so long is not sent any more. */
const UNUSED_MS = 10_000;

/** What a feed is for. */
export interface FeedOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'connect'>;
  readonly link: OwnerLink;
  readonly path: StreamPath;
  /** How many players this node counts, and those that have the stream from it. */
  readonly viewers: () => number;
  /** Whether players ask for parts. */
  readonly wantsParts: () => boolean;
  /** @param owner of the stream, whose chunklist it is */
  readonly onState: (file: string, state: ChunklistState, owner: NodeIdentity) => void;
  readonly onPart: (name: string, part: Media) => void;
  /** Takes an error that nothing foresees. */
  readonly onFault: (error: unknown) => void;
  /** Something came, or nothing more does. */
  readonly onChange: () => void;
}

interface Followed {
  /** What was asked for last. */
  readonly asked: string;
  readonly waiting: Set<(comes: boolean) => void>;
  /** By the monotonic clock. */
  usedAt: number;
}

/**
 * What other nodes send of a stream without being asked each time: on one connection, chunklists that players wait for, and the parts
 * that these tell of. Where there is no such connection, calls are made instead, which also tell why.
 */
export class Feed {
  readonly #options: FeedOptions;
  #line: Line | undefined;
  #opening = false;
  /** Incarnation of a node that could not be connected to, or sent nothing, and until when it is left alone. */
  #failed: { readonly incarnation: string; readonly until: number } | undefined;
  /** When the node that sends is late, by the monotonic clock; undefined where nothing is expected of it. */
  #lateAt: number | undefined;
  #closed = false;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** The node that was sending is silent, and has answered no call since. */
  get late(): boolean {
    return this.#lateAt !== undefined && performance.now() > this.#lateAt;
  }

  /** A call was answered. */
  heard(): void {
    this.#lateAt = undefined;
  }

  /**
   * Waits until something of a chunklist has come, as it does more than once in `holdMs`.
   * @returns false where it is to be called for: it is not sent, not any more, or nothing came
   */
  async hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean> {
    const line = this.#current();
    return line !== undefined && (await line.hold(file, wanted, Math.max(holdMs, LATE_MS)));
  }

  /** Whether what comes of a chunklist is sent here. */
  sends(file: string): boolean {
    return this.#line?.isFrom(this.#options.link.source) === true && this.#line.sends(file);
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    if (this.#line !== undefined && !this.#line.isFrom(this.#options.link.source)) this.#drop();
    if (this.#line?.tick(now) === false) this.#drop();
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** The connection to the node that the stream comes from; it is made when there is none. */
  #current(): Line | undefined {
    const { source } = this.#options.link;
    if (this.#line?.isFrom(source) === true) return this.#line;
    this.#drop();
    if (!this.#opening && !this.#closed && !this.#isPaused(source)) void this.#open(source);
    return undefined;
  }

  #isPaused({ node }: Source): boolean {
    return this.#failed?.incarnation === node.incarnation && performance.now() < this.#failed.until;
  }

  /** It never throws: what cannot be sent is called for. */
  async #open(source: Source): Promise<void> {
    const { cluster, form } = this.#options;
    this.#opening = true;
    try {
      const stream = await cluster.connect(source.node, feedPath(form), CONNECT_TIMEOUT_MS);
      if (this.#closed || this.#line !== undefined) return void stream.destroy();
      this.#line = this.#take(stream, source);
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof UnavailableError)) this.#options.onFault(error);
      this.#pause(source);
    } finally {
      this.#opening = false;
    }
  }

  #take(stream: Duplex, source: Source): Line {
    const line: Line = new Line(stream, source, this.#options, {
      onHeard: () => (this.#lateAt = performance.now() + LATE_MS),
      onFailed: () => {
        if (this.#line === line) this.#line = undefined;
        if (!this.late) this.#lateAt = undefined;
        else this.#options.link.leave(source);
        this.#pause(source);
      },
    });
    return line;
  }

  #pause({ node: { incarnation } }: Source): void {
    this.#failed = { incarnation, until: performance.now() + PAUSE_MS };
  }

  #drop(): void {
    const line = this.#line;
    this.#line = undefined;
    this.#lateAt = undefined;
    line?.close();
  }
}

/** One connection to a node that sends. */
class Line {
  readonly #stream: Duplex;
  readonly #source: Source;
  readonly #options: FeedOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #watchdog: Watchdog;
  readonly #timer = setInterval(() => this.#send({ alive: true }), ALIVE_MS).unref();
  /** When it was made, or used last, by the monotonic clock. */
  #usedAt = performance.now();
  #closed = false;

  /** @param on.onFailed called when the other end has closed it, is silent or sends what it should not */
  constructor(
    stream: Duplex,
    source: Source,
    options: FeedOptions,
    { onHeard, onFailed }: { readonly onHeard: () => void; readonly onFailed: () => void },
  ) {
    this.#stream = stream;
    this.#source = source;
    this.#options = options;
    const fail = (): void => {
      if (this.#closed) return;
      onFailed();
      this.close();
    };
    this.#watchdog = new Watchdog(SILENCE_MS, fail).unref();
    const reader = new FrameReader(FEED_LIMITS, (head, body) => this.#take(head, body));
    stream.on('data', (bytes: Buffer) => {
      if (this.#closed) return;
      this.#watchdog.heard();
      onHeard();
      try {
        reader.push(bytes);
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        fail();
      }
    });
    for (const event of ['error', 'end', 'close']) stream.on(event, fail);
  }

  isFrom({ node, branch }: Source): boolean {
    return node.incarnation === this.#source.node.incarnation && branch === this.#source.branch;
  }

  sends(file: string): boolean {
    return this.#followed.has(file);
  }

  async hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean> {
    const followed = this.#follow(file, wanted);
    if (followed === undefined) return false;
    const { waiting } = followed;
    const over = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => over.resolve(false), holdMs);
    waiting.add(over.resolve);
    try {
      return await over.promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(over.resolve);
    }
  }

  /** @returns false when nothing is used any more */
  tick(now: number): boolean {
    for (const [file, { usedAt }] of this.#followed) {
      if (now - usedAt < UNUSED_MS) continue;
      this.#followed.delete(file);
      this.#send({ file, leave: true });
    }
    return this.#followed.size > 0 || now - this.#usedAt < UNUSED_MS;
  }

  /** Who waits makes a call. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watchdog.close();
    clearInterval(this.#timer);
    this.#stream.destroy();
    for (const file of [...this.#followed.keys()]) this.#leave(file);
    this.#options.onChange();
  }

  #follow(file: string, { forms, after }: WantedChunklist): Followed | undefined {
    const present = this.#followed.get(file);
    if (this.#closed || (present === undefined && this.#followed.size >= MAX_FOLLOWED)) return undefined;
    const { path, viewers, wantsParts } = this.#options;
    const { branch } = this.#source;
    const request = { ...path, file, forms, viewers: viewers(), parts: wantsParts(), ...(branch && { branch }) };
    const asked = JSON.stringify(request);
    const waiting = present?.waiting ?? new Set();
    const followed = present?.asked === asked ? present : { asked, waiting, usedAt: 0 };
    if (followed !== present) {
      this.#followed.set(file, followed);
      this.#send({ ...request, ...(after !== undefined && { after }) });
    }
    this.#usedAt = followed.usedAt = performance.now();
    return followed;
  }

  #send(request: FeedRequest): void {
    writeFrame(this.#stream, request);
  }

  /** @throws FrameError */
  #take(head: Buffer, body: Buffer): void {
    const news = readJson(FeedNews, head);
    if (news === undefined) throw new FrameError('what was sent of a chunklist is malformed');
    if (news.file === undefined) return;
    const { file, state, part } = news;
    const { link, onState, onPart, onChange } = this.#options;
    const { owner } = this.#source;
    // what comes of an owner of the past counts no more
    if (!isSameLife(owner, link.owner)) return;
    if (part !== undefined) onPart(part.name, { kind: part.kind, type: part.type, body: [body] });
    if (state === undefined) return this.#leave(file);
    onState(file, state, owner);
    for (const comes of this.#followed.get(file)?.waiting ?? []) comes(true);
    onChange();
  }

  /** Nothing more comes of it. */
  #leave(file: string): void {
    const followed = this.#followed.get(file);
    this.#followed.delete(file);
    for (const comes of followed?.waiting ?? []) comes(false);
  }
}
