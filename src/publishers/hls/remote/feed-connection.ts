import type { Duplex } from 'node:stream';
import { isSameIncarnation, type NodeIdentity } from '#cluster';
import { Watchdog } from '../../../lib/watchdog.ts';
import { readJson } from '../../../lib/read-json.ts';
import { FrameError, FrameReader, writeFrame } from '../../../peers/peer-frames.ts';
import { withReusedReads } from '../../../protocols/reused-reads.ts';
import type { Media } from '../answer/played-stream.ts';
import { ALIVE_MS, FEED_LIMITS, FeedNews, MAX_FOLLOWED, type FeedRequest } from './feed-wire.ts';
import { isSameSource, type OwnerLink, type Source } from './link.ts';
import type { WantedChunklist } from './rendition.ts';
import type { ChunklistState, StreamPath } from '../sessions/wire.ts';

/** The other node sends something every second. */
const SILENCE_MS = 2500;
/** Time after which a chunklist that no player waits for is no longer followed. */
const UNUSED_MS = 10_000;

export interface FeedConnectionOptions {
  readonly link: OwnerLink;
  readonly path: StreamPath;
  readonly viewers: () => number;
  readonly wantsParts: () => boolean;
  /** @param owner of the stream, whose chunklist it is */
  readonly onState: (file: string, state: ChunklistState, owner: NodeIdentity) => void;
  readonly onPart: (name: string, part: Media) => void;
  /** Called when something came, or nothing more will. */
  readonly onChange: () => void;
}

interface Followed {
  /** JSON of the last request. */
  readonly asked: string;
  readonly waiting: Set<(comes: boolean) => void>;
  /** By the monotonic clock. */
  usedAt: number;
}

/** Connection to a node that sends chunklists and the parts that they announce. */
export class FeedConnection {
  readonly #stream: Duplex;
  readonly #source: Source;
  readonly #options: FeedConnectionOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #watchdog: Watchdog;
  readonly #timer = setInterval(() => this.#send({ alive: true }), ALIVE_MS).unref();
  /** When it was made or last used, by the monotonic clock. */
  #usedAt = performance.now();
  #closed = false;

  /** @param on.onFailed called when the other end has closed it, is silent or sends malformed data */
  constructor(
    stream: Duplex,
    source: Source,
    options: FeedConnectionOptions,
    { onHeard, onFailed }: { readonly onHeard: () => void; readonly onFailed: () => void },
  ) {
    this.#source = source;
    this.#options = options;
    const fail = (): void => {
      if (this.#closed) return;
      onFailed();
      this.close();
    };
    this.#watchdog = new Watchdog(SILENCE_MS, fail).unref();
    const reader = new FrameReader(FEED_LIMITS, (head, body) => this.#take(head, body));
    this.#stream = withReusedReads(stream, (bytes) => {
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
    for (const event of ['error', 'end', 'close']) this.#stream.on(event, fail);
  }

  isFrom(source: Source): boolean {
    return isSameSource(source, this.#source);
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

  /** Lets waiting requests make calls instead. Idempotent. */
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
    const { relayOf } = this.#source;
    const request = { ...path, file, forms, viewers: viewers(), parts: wantsParts(), ...(relayOf && { relayOf }) };
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
    // a former owner no longer counts
    if (!isSameIncarnation(owner, link.owner)) return;
    if (part !== undefined) onPart(part.name, { kind: part.kind, type: part.type, body: [body] });
    if (state === undefined) return this.#leave(file);
    onState(file, state, owner);
    for (const comes of this.#followed.get(file)?.waiting ?? []) comes(true);
    onChange();
  }

  #leave(file: string): void {
    const followed = this.#followed.get(file);
    this.#followed.delete(file);
    for (const comes of followed?.waiting ?? []) comes(false);
  }
}
