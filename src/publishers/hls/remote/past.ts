import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { WithBytes } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import { Text } from '../answer/text.ts';
import { journalLines, readJournal } from '../rewind/journal.ts';
import { numberedName } from '../rewind/numbered-name.ts';
import { Shelf } from '../rewind/shelf.ts';
import { firstAfterGaps, firstNumber, withPast } from '../rewind/with-past.ts';
import type { PastState, StreamPath } from '../sessions/wire.ts';
import type { OwnerLink } from './link.ts';

const TIMEOUT_MS = 4000;
/** Pause in which a node is not asked that knows of no past. */
const PAUSE_MS = 5000;
/** Segments in one answer: some 200 bytes each, which take some milliseconds to read. */
export const MOST_SEGMENTS = 500;
/** Newest segments that the next owner of a stream may not have: they are fetched from it anyway. */
const UNSURE = 30;

export interface RemotePastOptions {
  readonly link: Pick<OwnerLink, 'source' | 'calls'>;
  readonly calls: Pick<PeerCalls, 'callForBytes'>;
  readonly path: StreamPath;
  /** Query of every name, with its `?`; empty for none. */
  readonly query: string;
  readonly event: boolean;
}

/**
 * The past of the media playlists of a stream of another node, as far as players rewind here. It is fetched once, and then segment by
 * segment as they leave the window.
 */
export class RemotePast {
  readonly #options: RemotePastOptions;
  /** By the file name of the media playlist. */
  readonly #shelves = new Map<string, Shelf>();
  readonly #loading = new Map<string, Promise<void>>();
  /** `fills` of the other node when a playlist was fetched. */
  readonly #fills = new Map<string, number>();
  /** Incarnation of the owner that each list is of: another one may have other segments and gaps. */
  readonly #owners = new Map<string, string>();
  #run: string | undefined;
  /** Seconds of the longest segment in any of the media playlists. */
  #longest = 0;
  /** Until when the other node is not asked, since it knows of no past, by the monotonic clock. */
  #unknownUntil = -Infinity;

  constructor(options: RemotePastOptions) {
    this.#options = options;
  }

  /**
   * Puts the past in front of a media playlist, as far as the other node has it.
   * @param whole the present playlist, with all its segments
   * @param present the same in the form of the result
   * @throws streamInterrupted when the past cannot be had now
   */
  before(list: string, whole: Text, present: () => Text, form: ChunklistForm): Text | Promise<Text> {
    const text = whole.plain.toString();
    const first = firstNumber(text);
    if (first === undefined) return present();
    // gaps at the head may be at other times in the past, as they are in the other playlists
    const until = firstAfterGaps(text) ?? first;
    const compose = (): Text => {
      const past = this.#shelves.get(list)?.past;
      const pieces = withPast(text, past, { form, event: this.#options.event, longest: this.#longest });
      return pieces === undefined ? present() : new Text(pieces);
    };
    if (until === 0 || this.#covers(list, until) || this.#isUnknown) return compose();
    return this.#load(list, until).then(() => {
      // a playlist must not lose its past, and have it again
      if (!this.#covers(list, first) && !this.#isUnknown) throw kilnError('streamInterrupted');
      return compose();
    });
  }

  /** Playlist of the I-frames of a media playlist, up to its newest segment. @throws fileNotFound */
  async iFrames(list: string): Promise<Text> {
    await this.#load(list, Infinity);
    const text = this.#shelves.get(list)?.iFrames({ longest: this.#longest, event: this.#options.event, ended: false });
    if (text === undefined) throw kilnError('fileNotFound');
    return text;
  }

  /** Answers a node that relays from this one; undefined where there is no past. */
  async state(list: string, from: number, until?: number): Promise<WithBytes<PastState> | undefined> {
    if (!this.#covers(list, from + 1)) await this.#load(list, from + 1);
    const shelf = this.#shelves.get(list);
    if (shelf === undefined || this.#run === undefined) return undefined;
    return pastState(this.#run, shelf, { from, until }, this.#longest, this.#fills.get(list) ?? 0);
  }

  /** Forgets all: another run of the stream has begun. */
  clear(): void {
    this.#shelves.clear();
    this.#fills.clear();
    this.#owners.clear();
  }

  #forget(list: string): void {
    this.#shelves.delete(list);
    this.#fills.delete(list);
  }

  #covers(list: string, until: number): boolean {
    const past = this.#shelves.get(list)?.past;
    return past !== undefined && past.next >= until;
  }

  /** Never rejects. */
  #load(list: string, until: number): Promise<void> {
    const under = this.#loading.get(list);
    if (under !== undefined) return under;
    const loading = this.#fetch(list, until)
      .catch((error: unknown) => {
        if (!(error instanceof KilnError)) throw error;
        // a node of an earlier version, or one whose disk has nothing: players get the live edge
        if (error.code === 'callUnknown' || error.code === 'fileNotFound')
          this.#unknownUntil = performance.now() + PAUSE_MS;
      })
      .finally(() => this.#loading.delete(list));
    this.#loading.set(list, loading);
    return loading;
  }

  /** Whether the other node knows of no past at present. */
  get #isUnknown(): boolean {
    return performance.now() < this.#unknownUntil;
  }

  /** @throws KilnError */
  async #fetch(list: string, until: number): Promise<void> {
    const { link, calls, path } = this.#options;
    while (!this.#covers(list, until)) {
      const {
        node,
        relayOf,
        owner: { incarnation },
      } = link.source;
      const isOthers = (this.#owners.get(list) ?? incarnation) !== incarnation;
      const past = this.#shelves.get(list)?.past;
      const from = isOthers ? 0 : (past?.next ?? 0);
      const until = isOthers && past?.empty === false ? Math.max(past.first, past.next - UNSURE) : undefined;
      const request = {
        ...{ ...path, file: list, from },
        ...(until !== undefined && { until }),
        ...(relayOf !== undefined && { relayOf }),
      };
      const { answer, bytes } = await calls.callForBytes(node, link.calls.past, request, TIMEOUT_MS);
      if (until !== undefined && answer.digest !== undefined) {
        if (!this.#keepUntil(list, until, answer)) this.#forget(list);
        this.#owners.set(list, incarnation);
        continue;
      }
      if (isOthers) this.#forget(list);
      const isMore = this.#take(list, answer, bytes);
      this.#owners.set(list, incarnation);
      if (!isMore) return;
    }
  }

  /** Keeps the segments before a number if the next owner of the stream lists the same. @returns whether it does */
  #keepUntil(list: string, until: number, { run, first, longest, fills = 0, digest }: PastState): boolean {
    const shelf = this.#shelves.get(list);
    if (shelf === undefined || run !== this.#run || shelf.past.first > first) return false;
    shelf.drop(first);
    if (shelf.past.digest(until) !== digest) return false;
    shelf.past.truncate(until);
    this.#fills.set(list, fills);
    this.#longest = longest;
    return true;
  }

  /** @returns whether there was anything new */
  #take(list: string, { run, first, longest, fills = 0 }: PastState, lines: Buffer): boolean {
    if (run !== this.#run) this.clear();
    this.#run = run;
    this.#longest = longest;
    if (fills !== (this.#fills.get(list) ?? fills)) {
      // gaps have become segments: they are fetched from the beginning
      this.#forget(list);
      return true;
    }
    const segments = readJournal(lines.toString());
    const shape = numberedName(segments[0]?.name ?? '')?.shape;
    const shelf =
      this.#shelves.get(list) ?? (shape === undefined ? undefined : new Shelf(list, shape, this.#options.query));
    if (shelf === undefined) return false;
    this.#shelves.set(list, shelf);
    this.#fills.set(list, fills);
    shelf.drop(first);
    for (const segment of segments) shelf.add(segment);
    return segments.length > 0;
  }
}

/** Answer about the past of a media playlist, from a number on, or until one. @param longest as of `PastState` @param fills as of `PastState` */
export function pastState(
  run: string,
  shelf: Shelf,
  { from, until }: { readonly from: number; readonly until?: number | undefined },
  longest: number,
  fills: number,
): WithBytes<PastState> {
  const { past } = shelf;
  if (until !== undefined && past.first < until && until <= past.next)
    return { answer: { run, first: past.first, longest, fills, digest: past.digest(until) }, bytes: Buffer.alloc(0) };
  const lines = journalLines(shelf.segments(from, MOST_SEGMENTS));
  return { answer: { run, first: shelf.past.first, longest, fills }, bytes: Buffer.from(lines) };
}
