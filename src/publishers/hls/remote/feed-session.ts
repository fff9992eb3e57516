import type { Duplex } from 'node:stream';
import type { Static } from 'typebox';
import type { NodeIdentity } from '#cluster';
import { Watchdog } from '../../../lib/watchdog.ts';
import { KilnError } from '../../../errors.ts';
import type { FaultLog } from '../../../log/log.ts';
import { readJson } from '../../../lib/read-json.ts';
import type { WithBytes } from '../../../peers/peer-call.ts';
import { FrameError, FrameReader, writeFrame } from '../../../peers/peer-frames.ts';
import { markOf } from '../blocking-reload/chunklist-position.ts';
import { ALIVE_MS, FeedRequest, hintOf, MAX_FOLLOWED, REQUEST_LIMITS, type FeedNews } from './feed-wire.ts';
import type { ChunklistState, PlaylistCalls } from '../sessions/wire.ts';

/** Longest wait for one change of a chunklist: the following node counts as watching that often. */
const HOLD_MS = 1000;
/** Unsent bytes beyond which the receiving node is slow: the next state is loaded and sent after they drain. */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024;
const SILENCE_MS = 5000;

type Follow = Extract<FeedRequest, { forms: unknown }>;

/** Tests whether a chunklist is as last sent, or at the known mark. An end of the stream need not change the mark. */
function isSame(state: ChunklistState, before: ChunklistState | undefined, mark: string | undefined): boolean {
  if (before === undefined) return !state.interrupted && markOf(state.position) === mark;
  const { run, interrupted, texts } = state;
  return run === before.run && interrupted === before.interrupted && texts.full === before.texts.full;
}

interface Followed {
  request: Follow;
}

/** Source of the files, shared with calls. Its methods throw a KilnError. */
export interface FeedSource {
  chunklist(
    asked: Static<PlaylistCalls['chunklist']['request']>,
    from: NodeIdentity,
  ): ChunklistState | null | Promise<ChunklistState | null>;
  media(
    asked: Static<PlaylistCalls['media']['request']>,
    from: NodeIdentity,
  ): Promise<WithBytes<Static<PlaylistCalls['media']['answer']>>>;
}

/** Sends another node the chunklists that it follows whenever they change, and with them the parts that they announce. */
export class FeedSession {
  readonly #stream: Duplex;
  readonly #from: NodeIdentity;
  readonly #source: FeedSource;
  readonly #faults: FaultLog;
  readonly #onClose: () => void;
  readonly #followed = new Map<string, Followed>();
  readonly #waiting: (() => void)[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #watchdog = new Watchdog(SILENCE_MS, () => this.#fail('it follows chunklists and says nothing')).unref();
  #closed = false;

  constructor(
    stream: Duplex,
    from: NodeIdentity,
    options: { readonly source: FeedSource; readonly faults: FaultLog; readonly onClose: () => void },
  ) {
    this.#stream = stream;
    this.#from = from;
    this.#source = options.source;
    this.#faults = options.faults;
    this.#onClose = options.onClose;
    const reader = new FrameReader(REQUEST_LIMITS, (head) => this.#take(head));
    stream.on('data', (bytes: Buffer) => this.#read(reader, bytes));
    stream.on('drain', () => this.#drain());
    stream.on('error', () => this.close());
    stream.on('end', () => this.close());
    stream.on('close', () => this.close());
    this.#timer = setInterval(() => {
      if (stream.writableLength === 0) this.#write({});
    }, ALIVE_MS).unref();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#watchdog.close();
    this.#followed.clear();
    this.#stream.destroy();
    this.#drain();
    this.#onClose();
  }

  #read(reader: FrameReader, bytes: Buffer): void {
    if (this.#closed) return;
    this.#watchdog.heard();
    try {
      reader.push(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error.message);
    }
  }

  #take(head: Buffer): void {
    const request = readJson(FeedRequest, head);
    if (request === undefined) return this.#fail('a request for a chunklist is malformed');
    if ('alive' in request) return;
    if ('leave' in request) return void this.#followed.delete(request.file);
    const present = this.#followed.get(request.file);
    if (present !== undefined) return void (present.request = request);
    if (this.#followed.size >= MAX_FOLLOWED) return this.#fail('too many chunklists are followed');
    const followed = { request };
    this.#followed.set(request.file, followed);
    void this.#follow(followed);
  }

  #fail(what: string): void {
    this.#faults.count(`node ${this.#from.id}: ${what}`);
    this.close();
  }

  /** Sends a chunklist on every change until it is left or cannot be loaded. Never throws. */
  async #follow(followed: Followed): Promise<void> {
    const { file } = followed.request;
    const isOver = (): boolean => this.#followed.get(file) !== followed;
    const { after: known } = followed.request;
    let after = known;
    let before: ChunklistState | undefined;
    while (!isOver()) {
      const { request } = followed;
      const state = await this.#load({ ...request, after, holdMs: HOLD_MS });
      if (isOver()) return;
      if (state === undefined) {
        this.#followed.delete(file);
        return this.#write({ file });
      }
      after = markOf(state.position);
      if (isSame(state, before, known)) continue;
      const hint = before && hintOf(before.texts.full ?? '');
      const part = request.parts && hint !== undefined ? await this.#part(request, hint) : undefined;
      if (isOver()) return;
      this.#write({ file, state, ...(part && { part: { name: hint as string, ...part.answer } }) }, part?.bytes);
      before = state;
      if (this.#stream.writableLength > MAX_UNSENT_BYTES) await this.#drained();
    }
  }

  /** @returns undefined where a call would be answered with the reason */
  async #load(asked: Static<PlaylistCalls['chunklist']['request']>): Promise<ChunklistState | undefined> {
    try {
      return (await this.#source.chunklist(asked, this.#from)) ?? undefined;
    } catch (error) {
      this.#note(error);
      return undefined;
    }
  }

  /** Loads the announced part; undefined where it did not come. */
  async #part({ vhost, app, stream, relayOf }: Follow, file: string) {
    try {
      return await this.#source.media(
        { vhost, app, stream, file, ...(relayOf !== undefined && { relayOf }) },
        this.#from,
      );
    } catch (error) {
      this.#note(error);
      return undefined;
    }
  }

  #note(error: unknown): void {
    if (error instanceof KilnError) return;
    const { stack, message } = error as Error;
    this.#faults.count(
      `what node ${this.#from.id} follows could not be sent: ${(stack ?? message).split('\n', 2).join('')}`,
    );
  }

  #write(news: Static<typeof FeedNews>, body?: Buffer): void {
    if (!this.#closed) writeFrame(this.#stream, news, body && [body]);
  }

  /** Resolves when the written bytes have drained or the session has closed. */
  #drained(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #drain(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
