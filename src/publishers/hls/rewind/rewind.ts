import { setImmediate as turn } from 'node:timers/promises';
import { DiskHangs, ifItHangs } from '../../../core/disk-calls.ts';
import type { Disk } from '../../../core/disks.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import type { FaultLog, Logger } from '../../../log/log.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { PastCounts } from '../answer/counts.ts';
import type { MediaCache } from '../answer/media-cache.ts';
import type { Media } from '../answer/played-stream.ts';
import type { FollowedSegment, Follower } from '../answer/segment-followers.ts';
import { Text } from '../answer/text.ts';
import type { Elsewhere, Holder } from './elsewhere.ts';
import { LateNodes } from './late-nodes.ts';
import { addHeld, byNumber, merged, type Held } from './merged.ts';
import type { PastSegment } from './journal.ts';
import type { RunFiles, Stored } from './run-files.ts';
import { nameOf, numberedName } from './numbered-name.ts';
import type { SegmentTimes } from './past-list.ts';
import { firstOf, Room } from './room.ts';
import { Shelf } from './shelf.ts';
import { Steps } from './steps.ts';
import { withPast } from './with-past.ts';

export interface RewindOptions {
  /** Disk that the files are on. It is closed with this. */
  readonly disk: Disk;
  readonly files: RunFiles;
  /** Seconds that players may rewind. Of a playlist of type EVENT nothing leaves. */
  readonly maxSeconds: number;
  readonly event: boolean;
  /** Free bytes that the disk keeps. */
  readonly minFree: number;
  /** Query of every name, with its `?`; empty for none. */
  readonly query: string;
  readonly cache: MediaCache;
  /** Finds segments of the run on other nodes. */
  readonly elsewhere: () => Promise<readonly Elsewhere[]>;
  readonly counts: PastCounts;
  /** Called once when a playlist of type EVENT can grow no more. */
  readonly onFull: () => void;
  /** Closes what else is open on the disk. */
  readonly onClose?: () => Promise<void>;
  readonly log: Logger;
  readonly faults: FaultLog;
}

/** Time for which players may request a segment that has left its playlist. */
const GRACE_MS = 60_000;
/** Time after which a node that is away counts as gone: it may be restarting. */
const AWAY_MS = 30_000;
/** Segments that are listed in one turn while the past is loaded. */
const SEGMENTS_PER_TURN = 500;
/** Segments that are listed in place of gaps in one turn. */
const SEGMENTS_PER_FILL = 250;
/** Segments of one moment are written at once. Those of renditions that are complete later than this after the first one are written alone. */
const TOGETHER_MS = 200;
/** Numbers by which segments of one media playlist may leave later than those of another. */
const LATE_LEAVING = 4;
/** Steps that wait for the disk, beyond which segments are written together, whenever they come. */
const MANY_STEPS = 16;
/** Limit of gaps that wait to be noted: those that are not are none the less for that. */
const MAX_GAPS = 1000;
/** Key of the step that runs after others. */
const STATE = Symbol('state');

/**
 * The past of one stream, in which players rewind: complete segments are written to the disk, and media playlists go back to them.
 * The live stream does not depend on it: a segment that cannot be written becomes a gap when it leaves the window.
 */
export class Rewind implements Follower {
  readonly #options: RewindOptions;
  readonly #disk: Disk;
  /** By the file name of the media playlist. */
  readonly #shelves = new Map<string, Shelf>();
  readonly #byShape = new Map<string, Shelf>();
  readonly #inits = new Map<string, Media>();
  /** Segments that other nodes have on their disks. */
  #elsewhere: readonly Held[] = [];
  #late: LateNodes | undefined;
  /** Since when such nodes are away, by the monotonic clock. */
  readonly #awaySince = new Map<Holder, number>();
  /** Segments that are being read, by name. */
  readonly #reading = new Map<string, Promise<readonly Buffer[] | 'late' | undefined>>();
  /** Complete segments that are not on the disk yet, by name. */
  readonly #unwritten = new Map<string, FollowedSegment>();
  /** Files that have left their playlist, oldest first, and until when they are kept, by the monotonic clock. */
  readonly #leaving: { readonly name: string; readonly until: number }[] = [];
  /** Segments that are written next, at once. */
  #waiting: Waiting[] = [];
  /** Runs after them. */
  #after: (() => Promise<void>) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether too many steps are left for another one: what waits goes on waiting. */
  #isHeld = false;
  readonly #room: Room;
  readonly #steps = new Steps((error) => this.#fault(error));
  #loading: Promise<void> | undefined;
  #state: 'open' | 'full' | 'closed' = 'open';
  #isLong = false;

  constructor(options: RewindOptions) {
    this.#options = options;
    this.#disk = options.disk;
    const onFull = (): void => {
      if (this.#state === 'open') this.#state = 'full';
      options.onFull();
    };
    this.#room = new Room({ ...options, onFull }, this.#shelves, () => this.#leaving.splice(0).map(({ name }) => name));
    this.#loading = this.#load().finally(() => (this.#loading = undefined));
  }

  /** Resolves when the segments that were on the disk are known; undefined from then on. Never rejects. */
  get loading(): Promise<void> | undefined {
    return this.#loading;
  }

  /** Takes a segment that was completed. Known ones are ignored. */
  segment(segment: FollowedSegment): void {
    if (this.#loading !== undefined) return void this.#loading.then(() => this.segment(segment));
    if (this.#state !== 'open') return;
    const shelf = this.#shelfOf(segment.list, segment.name);
    if (shelf?.add(segment) !== true) return;
    const { init, gap, bytes, msn, name } = segment;
    if (init !== undefined && !this.#inits.has(init.name)) {
      this.#putInit(init.name, init.data);
      this.#do(() => this.#options.files.write(init.name, [init.data]), init.name);
    }
    if (gap && this.#waiting.length < MAX_GAPS) this.#write({ shelf, segment });
    else if (gap) this.#later();
    else if (this.#disk.isOverloaded) this.#lose(shelf, msn, 'the disk is too slow');
    else {
      this.#unwritten.set(name, segment);
      this.#disk.count(bytes);
      this.#write({ shelf, segment });
    }
    this.#trim(shelf);
  }

  /** The publisher has left, or the playlists were concluded: no more segments come for now. */
  end(): void {}

  /**
   * Puts the past in front of a media playlist.
   * @param present answers a form of the present playlist
   * @param form of the result
   */
  before(list: string, present: (form: ChunklistForm) => Text, form: ChunklistForm): Text {
    const past = this.#shelves.get(list)?.past;
    const whole = present(form === 'legacy' ? 'legacy' : 'full').plain.toString();
    const pieces = withPast(whole, past, { form, event: this.#options.event, longest: this.longest });
    return pieces === undefined ? present(form) : new Text(pieces);
  }

  /** Whether viewers can go back to a date range with an id. */
  hasDateRange(id: string): boolean {
    return [...this.#shelves.values()].some(({ past }) => past.hasDateRange(id));
  }

  /** Seconds of the longest segment in any of the media playlists. */
  get longest(): number {
    return Math.max(0, ...[...this.#shelves.values()].map(({ past }) => past.longest));
  }

  /** A media playlist with its past; undefined where there is none. */
  shelf(list: string): Shelf | undefined {
    const shelf = this.#shelves.get(list);
    return shelf?.past.empty === false ? shelf : undefined;
  }

  /** Playlist of the I-frames of a media playlist; undefined where there is none. @param ended no more segments follow */
  iFrames(list: string, ended: boolean): Text | undefined {
    return this.#shelves.get(list)?.iFrames({ longest: this.longest, event: this.#options.event, ended });
  }

  /** Finds a segment or an initialization of the past. */
  media(name: string): Media | undefined {
    const init = this.#inits.get(name);
    if (init !== undefined) return init;
    const { shape = '', msn = 0 } = numberedName(name) ?? {};
    const shelf = this.#byShape.get(shape);
    if (shelf?.past.has(msn) !== true) return undefined;
    return this.#options.cache.get(this, name) ?? new StoredMedia(name, () => this.#readForPlayers(shelf, msn));
  }

  /** Reads all listed segments, oldest first, up to the newest at the end of that. One whose media is gone is a gap. */
  async *segments(): AsyncGenerator<FollowedSegment> {
    const next = new Map<Shelf, number>();
    const msnOf = (shelf: Shelf): number => Math.max(next.get(shelf) ?? 0, shelf.past.first);
    for (;;) {
      const [oldest] = [...this.#shelves.values()]
        .filter((shelf) => msnOf(shelf) < shelf.past.next)
        .sort((one, other) => msnOf(one) - msnOf(other));
      if (oldest === undefined) return;
      const msn = msnOf(oldest);
      next.set(oldest, msn + 1);
      yield await this.#withBody(oldest, msn);
    }
  }

  /** Runs a step after all that was to be written so far, unless another one takes its place until then. */
  afterWrites(step: () => Promise<void>): void {
    this.#after = step;
    this.#later();
  }

  /** Resolves when all is written, or as soon as the disk does not answer. The files stay. Idempotent. */
  async close(): Promise<void> {
    const isFirst = this.#state !== 'closed';
    this.#state = 'closed';
    await this.#loading;
    this.#late?.close();
    this.#flush();
    await this.#written();
    if (!isFirst) return;
    if (this.#disk.hangs) this.#giveUp();
    // of a disk that hangs when it answers again
    this.#do(() => this.#closeFiles());
    await this.#written();
    this.#options.cache.drop(this);
    this.#disk.close();
  }

  /** Resolves when no step is left, or the disk hangs. Never rejects. */
  async #written(): Promise<void> {
    await this.#disk.unlessHanging(async () => await this.#steps.over).catch(ifItHangs);
  }

  /** Never rejects. */
  async #closeFiles(): Promise<void> {
    await this.#options.files.close().catch((error: unknown) => this.#fault(error));
    await this.#options.onClose?.();
  }

  /** Writes no more. */
  #giveUp(): void {
    this.#steps.drop();
    for (const { list, msn, bytes } of this.#unwritten.values()) {
      const shelf = this.#shelves.get(list);
      if (shelf !== undefined) this.#lose(shelf, msn, new DiskHangs().message);
      this.#disk.count(-bytes);
    }
    this.#unwritten.clear();
  }

  /** Never rejects. */
  async #load(): Promise<void> {
    const { elsewhere } = this.#options;
    const onFault = (error: unknown): void => this.#fault(error);
    const none: ReadonlyMap<string, readonly PastSegment[]> = new Map();
    const [own, others] = await Promise.all([
      this.#loadFiles(onFault).catch((error: unknown) => (onFault(error), none)),
      elsewhere(),
    ]);
    const lists = new Set([own, ...others.map((node) => node.lists)].flatMap((each) => [...each.keys()]));
    const all = new Map<string, readonly PastSegment[]>();
    for (const list of lists) {
      const { segments, held } = merged(own.get(list) ?? [], others, list);
      all.set(list, segments);
      this.#elsewhere = [...this.#elsewhere, ...held];
    }
    let count = 0;
    for (const { list, segment } of byNumber(all)) {
      const shelf = this.#shelfOf(list, segment.name);
      shelf?.add(shelf.past.agreed(segment));
      if (count++ % SEGMENTS_PER_TURN === 0) await turn();
    }
    this.#level();
    for (const shelf of this.#shelves.values()) {
      this.#trim(shelf);
      for (const init of shelf.past.inits) {
        const data = await this.#findInit(init, others);
        if (data === undefined) shelf.past.markGapsOf(init);
        else this.#putInit(init, data);
      }
    }
    this.#late = new LateNodes(others, (found) => this.#fill(found));
  }

  /** Finds what is on the disk. @throws errors of the system; DiskHangs */
  async #loadFiles(onFault: (error: unknown) => void): Promise<ReadonlyMap<string, readonly PastSegment[]>> {
    return await this.#disk.unlessHanging(() => this.#options.files.load(onFault, (call) => this.#disk.take(call)));
  }

  /** Reads a file from the disk. @throws as `#loadFiles` */
  async #readFile(name: string): Promise<Buffer> {
    return await this.#disk.unlessHanging(() => this.#disk.take(() => this.#options.files.read(name)));
  }

  /** Lets all playlists end with the same number: a node may have died after it had written the last segment of some. */
  #level(): void {
    const next = Math.max(0, ...[...this.#shelves.values()].map(({ past }) => past.next));
    for (const { past, shape } of this.#shelves.values()) past.extend(next, nameOf(shape, next));
  }

  /** Times of a segment in any playlist but one, of one with media if there is any; undefined where none lists it. */
  #timesBeside(list: string, msn: number): SegmentTimes | undefined {
    let times: SegmentTimes | undefined;
    for (const { name, past } of this.#shelves.values()) {
      if (name === list || !past.lists(msn)) continue;
      if (past.has(msn)) return past.times(msn);
      times ??= past.times(msn);
    }
    return times;
  }

  /** Lists segments of another node that were gaps so far. Never rejects. */
  async #fill({ lists, holder }: Elsewhere): Promise<void> {
    for (const [list, segments] of lists) {
      const shelf = this.#shelves.get(list);
      if (shelf === undefined) continue;
      for (let at = 0; at < segments.length; at += SEGMENTS_PER_FILL) {
        const part = segments.slice(at, at + SEGMENTS_PER_FILL);
        for (const init of new Set(part.flatMap((segment) => segment.init?.name ?? []))) {
          const data = this.#inits.has(init) ? undefined : await this.#findInit(init, [holder]);
          if (data !== undefined) this.#putInit(init, data);
        }
        const held: Held[] = [];
        const playable = part.filter(({ init }) => init === undefined || this.#inits.has(init.name));
        const filled = shelf.past.fill(playable.filter(({ gap }) => !gap));
        for (const msn of filled) addHeld(held, list, msn, holder);
        for (const other of this.#shelves.values())
          if (other !== shelf) other.past.retime(filled, (msn) => other.nameOf(msn));
        this.#elsewhere = [...this.#elsewhere, ...held];
        await turn();
      }
    }
  }

  /** Reads an initialization from this node, or else from another one, and keeps it here; undefined where no node has it. */
  async #findInit(name: string, others: readonly Holder[]): Promise<Buffer | undefined> {
    const { files } = this.#options;
    for (const holder of [undefined, ...others]) {
      try {
        const data = await (holder === undefined ? this.#readFile(name) : holder.read(name));
        if (holder !== undefined) this.#do(() => files.write(name, [data]), name);
        return data;
      } catch (error) {
        if (!isGone(error)) this.#fault(error);
      }
    }
    return undefined;
  }

  #shelfOf(list: string, segment: string): Shelf | undefined {
    const known = this.#shelves.get(list);
    const shape = numberedName(segment)?.shape;
    if (known !== undefined || shape === undefined) return known;
    const shelf = new Shelf(list, shape, this.#options.query, (msn) => this.#timesBeside(list, msn));
    this.#shelves.set(list, shelf);
    this.#byShape.set(shape, shelf);
    return shelf;
  }

  #putInit(name: string, data: Buffer): void {
    this.#inits.set(name, { kind: 'init', type: typeOf(name), body: [data] });
  }

  #write(waiting: Waiting): void {
    this.#waiting.push(waiting);
    // what a crash loses is what players have seen already
    if (this.#isWhole(waiting.segment.msn)) this.#flush();
    else this.#later();
  }

  /** Whether no media playlist lacks a segment that others have. One without the segment before is not waited for. */
  #isWhole(msn: number): boolean {
    for (const { past } of this.#shelves.values()) if (past.next === msn && !past.empty) return false;
    return true;
  }

  #later(): void {
    if (this.#state === 'closed') this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), TOGETHER_MS).unref();
  }

  /** Has all written that waits. */
  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isHeld = this.#steps.size >= MANY_STEPS && this.#state !== 'closed';
    if (this.#isHeld) return;
    const waiting = this.#waiting.splice(0);
    if (waiting.length > 0) this.#do(() => this.#store(waiting));
    const after = this.#after;
    this.#after = undefined;
    if (after !== undefined) this.#do(after, STATE);
  }

  /** Never rejects. */
  async #store(waiting: readonly Waiting[]): Promise<void> {
    const media = waiting.filter(({ segment }) => !segment.gap);
    const refusal = media.length === 0 ? undefined : await this.#room.refusal(media);
    const stored: (Waiting & Stored)[] = [];
    for (const { shelf, segment } of waiting) {
      try {
        if (refusal !== undefined && !segment.gap) this.#lose(shelf, segment.msn, refusal);
        else stored.push({ shelf, segment, body: segment.gap ? undefined : await segment.body() });
      } catch (error) {
        this.#lose(shelf, segment.msn, (error as Error).message);
      }
    }
    const { files, counts } = this.#options;
    try {
      if (stored.length > 0) await files.store(stored);
      for (const { segment } of stored) {
        if (segment.gap) continue;
        counts.storedSegments++;
        counts.storedBytes += segment.bytes;
      }
    } catch (error) {
      const lost = stored.filter(({ segment }) => !segment.gap);
      for (const { shelf, segment } of lost) this.#lose(shelf, segment.msn, (error as Error).message);
      if (lost.length === 0) this.#fault(error);
    } finally {
      for (const { segment } of waiting) if (this.#unwritten.delete(segment.name)) this.#disk.count(-segment.bytes);
      if (this.#isHeld) this.#later();
    }
  }

  #lose(shelf: Shelf, msn: number, reason: string): void {
    shelf.past.markGap(msn);
    this.#options.counts.lostSegments++;
    this.#options.faults.count(`HLS: a segment is lost to players that rewind: ${reason}`);
  }

  #trim(shelf: Shelf): void {
    const { files, maxSeconds, event, log } = this.#options;
    if (event) {
      if (!this.#isLong && shelf.past.seconds > maxSeconds) {
        this.#isLong = true;
        log.warn({ event: 'rewind.long', seconds: maxSeconds }, 'a playlist of type EVENT is longer than MaxDuration');
      }
      return;
    }
    const now = performance.now();
    const leaving = shelf.trim(maxSeconds);
    const since = shelf.end - maxSeconds * 1000;
    // such as those of a track that the publisher sends no more
    for (const other of this.#shelves.values()) if (other.end < since) leaving.push(...other.drop(Infinity));
    for (const name of leaving) this.#leaving.push({ name, until: now + GRACE_MS });
    const first = firstOf(this.#shelves);
    while (this.#leaving[0] !== undefined && this.#leaving[0].until <= now) {
      const { name } = this.#leaving.shift() as { readonly name: string };
      this.#do(async () => {
        await files.remove(name);
        // those that became gaps have left without a name
        await files.packs.removeBefore(Math.min(first, numberedName(name)?.msn ?? 0) - LATE_LEAVING);
      });
    }
    for (const journal of files.oldJournals(first)) this.#do(async () => void (await files.remove(journal)));
    this.#forgetInits();
    this.#leaveNodes(now);
  }

  /** Lists as gaps what nodes had that have been away for long. @param now by the monotonic clock */
  #leaveNodes(now: number): void {
    this.#elsewhere = this.#elsewhere.filter((held) => {
      if (held.to <= (this.#shelves.get(held.list)?.past.first ?? 0)) return false;
      if (held.node.isThere()) this.#awaySince.delete(held.node);
      else if (!this.#awaySince.has(held.node)) this.#awaySince.set(held.node, now);
      if (now - (this.#awaySince.get(held.node) ?? now) < AWAY_MS) return true;
      const past = this.#shelves.get(held.list)?.past;
      for (let msn = held.from; msn < held.to; msn++) past?.markGap(msn);
      return false;
    });
  }

  /** Removes initializations that no segment needs any more. */
  #forgetInits(): void {
    const lists = [...this.#shelves.values()];
    if (this.#inits.size <= lists.length) return;
    const used = new Set(lists.flatMap(({ past }) => [...past.inits]));
    for (const name of this.#inits.keys()) {
      if (used.has(name)) continue;
      this.#inits.delete(name);
      this.#do(async () => void (await this.#options.files.remove(name)), name);
    }
  }

  async #withBody(shelf: Shelf, msn: number): Promise<FollowedSegment> {
    const { init, ...segment } = shelf.past.segment(msn, shelf.nameOf(msn));
    const read = segment.gap ? undefined : await this.#read(shelf, msn);
    const body = read === 'late' ? undefined : read;
    const [data] = this.#inits.get(init?.name ?? '')?.body ?? [];
    return {
      ...{ ...segment, list: shelf.name, gap: body === undefined, bytes: 0, body: () => body ?? [] },
      breaksBefore: shelf.past.dateRanges(msn),
      ...(init !== undefined && data !== undefined && { init: { name: init.name, data, keys: init.keys ?? '' } }),
    };
  }

  /** Reads a segment for players. @throws fileNotFound; playlistOverdue where the disk, or the node that has it, does not answer */
  async #readForPlayers(shelf: Shelf, msn: number): Promise<readonly Buffer[]> {
    const name = shelf.nameOf(msn);
    const isWritten = !this.#unwritten.has(name);
    const body = await this.#read(shelf, msn);
    if (body === 'late') throw kilnError('playlistOverdue');
    if (body === undefined) throw kilnError('fileNotFound');
    if (isWritten) this.#options.cache.put(this, name, { kind: 'segment', type: typeOf(name), body });
    return body;
  }

  /** Reads a segment, once for all that ask at the time; undefined where it is not to be had, `late` where there is no answer. Never rejects. */
  #read(shelf: Shelf, msn: number): Promise<readonly Buffer[] | 'late' | undefined> {
    const name = shelf.nameOf(msn);
    const under = this.#reading.get(name);
    if (under !== undefined) return under;
    const reading = this.#readAnew(shelf, msn, name).finally(() => this.#reading.delete(name));
    this.#reading.set(name, reading);
    return reading;
  }

  async #readAnew(shelf: Shelf, msn: number, name: string): Promise<readonly Buffer[] | 'late' | undefined> {
    const { node } = this.#elsewhere.find(({ list, from, to }) => list === shelf.name && from <= msn && msn < to) ?? {};
    try {
      const waiting = this.#unwritten.get(name);
      if (waiting !== undefined) return await waiting.body();
      return [await (node?.read(name) ?? this.#readFile(name))];
    } catch (error) {
      // another node, or a disk that has failed, may be there again soon
      if (isGone(error)) this.#lose(shelf, msn, (error as Error).message);
      else this.#fault(error);
      return error instanceof DiskHangs || (error instanceof KilnError && error.status === 503) ? 'late' : undefined;
    }
  }

  /** Has the disk do something after what it has to do before. @param key as of `Steps.add` */
  #do(step: () => Promise<void>, key?: string | symbol): void {
    this.#steps.add(() => this.#disk.take(step), key);
  }

  #fault(error: unknown): void {
    this.#options.faults.count(`HLS: the folder for players that rewind: ${(error as Error).message}`);
  }
}

/** A segment that is to be written. */
interface Waiting {
  readonly shelf: Shelf;
  readonly segment: FollowedSegment;
}

/** Whether a file is not there for good: not only for want of memory, descriptors, or an answer. */
function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ELOOP' || code === 'ENODATA';
}

/** A segment that is read from the disk when it is requested. */
class StoredMedia implements Media {
  readonly kind = 'segment';
  readonly type: Media['type'];
  body: readonly Buffer[] = [];
  readonly #read: () => Promise<readonly Buffer[]>;

  constructor(name: string, read: () => Promise<readonly Buffer[]>) {
    this.type = typeOf(name);
    this.#read = read;
  }

  async write(): Promise<void> {
    this.body = await this.#read();
  }
}

function typeOf(name: string): Media['type'] {
  if (name.endsWith('.ts')) return 'ts';
  if (name.endsWith('.vtt')) return 'subtitle';
  return name.includes('_audio_') ? 'audio' : 'video';
}
