import { mkdir, open, readFile, realpath, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '../../../log/log.ts';
import { diskCalls, DiskHangs } from '../../../core/disk-calls.ts';
import { Disks, type Disk } from '../../../core/disks.ts';
import { unless } from '../../../lib/files/unless.ts';
import { within } from '../../../lib/within.ts';
import type { FollowedSegment, Follower } from '../answer/segment-followers.ts';
import { GrowingFile, writeWhole } from './growing-file.ts';
import { DumpInfo } from './info.ts';
import { DumpedList } from './list.ts';

export interface DumpedMaster {
  readonly file: string;
  readonly text: string;
  /** File names of its media playlists. */
  readonly lists: readonly string[];
}

export interface DumpOptions {
  /** Absolute. */
  readonly outputPath: string;
  /** `outputPath` before its macros were replaced: dumps with the same one share a disk. */
  readonly template: string;
  readonly infoFile?: string;
  readonly userData?: string;
  /** `/vhost/app/stream` */
  readonly stream: string;
  /** Keeps on-demand encoders and pulls running. @returns a function that ends this */
  readonly watch: () => () => void;
  readonly follow: (follower: Follower) => () => void;
  /** All segments that players can rewind to, up to the present; undefined where they cannot. */
  readonly past?: () => AsyncIterable<FollowedSegment> | undefined;
  /** Requested master playlists that can be played. */
  readonly masters: () => readonly DumpedMaster[];
  /** Called when the stream has ended, to call `end`. */
  readonly onEnd: () => void;
  /** Continues media playlists of an earlier dump, since file names are unique to this run of the stream. */
  readonly continues: boolean;
  readonly log: Logger;
}

/** Interval of writing playlists while segments are waiting. */
const FLUSH_MS = 1000;
/** Longest wait of a start for the window to be written. */
const START_MS = 5000;

/** Dumps of this process by folder. */
const inUse = new Map<string, Dump>();
/** Write queues of all dumps by disk. The windows at their starts do not count. */
const disks = new Disks();

/** Files and media that a dump has written. */
export interface Dumped {
  /** Absolute, with links resolved. */
  readonly folder: string;
  /** File names of media playlists and master playlists. */
  readonly lists: readonly string[];
  readonly masters: readonly string[];
  /** Bytes of media that it has written itself. */
  readonly bytes: number;
  /** Milliseconds of media. */
  readonly duration: number;
  /** Times of its media, in milliseconds since the epoch. */
  readonly startTime: number;
  readonly finishTime: number;
}

/** Whether a dump of this process writes to a folder. @param folder with links resolved */
export function isDumping(folder: string): boolean {
  return inUse.has(folder);
}

export class DumpError extends Error {
  override readonly name = 'DumpError';
}

/**
 * Writes the segments of a stream to a folder with VOD playlists. Media playlists follow the segments that they name, and master
 * playlists follow those: the folder can be played at any time, even after a crash of this process.
 */
export class Dump {
  readonly #options: DumpOptions;
  readonly #info: DumpInfo;
  /** Set once this dump has created it. */
  #infoFile: GrowingFile | undefined;
  /** Oldest first; `bytes` count towards the limit of the disk. */
  readonly #queue: { readonly segment: FollowedSegment; readonly bytes: number }[] = [];
  #disk: Disk | undefined;
  readonly #lists = new Map<string, { readonly list: DumpedList; readonly file: GrowingFile }>();
  readonly #inits = new Set<string>();
  /** Media playlists in each written master playlist, by file. */
  readonly #masters = new Map<string, string>();
  readonly #undo: (() => void)[] = [];
  #flushedAt = 0;
  #working: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #failure: Error | undefined;
  /** Folder with links resolved, while it is reserved. */
  #folder: string | undefined;
  #place = '';
  #bytes = 0;
  /** Seconds of media, by media playlist. */
  readonly #seconds = new Map<string, number>();
  /** Times of the media, in milliseconds since the epoch. */
  #startTime = Infinity;
  #finishTime = 0;

  constructor(options: DumpOptions) {
    this.#options = options;
    this.#info = new DumpInfo(options.stream, options.userData);
  }

  /** Files and media so far; undefined before the first playlist. */
  get dumped(): Dumped | undefined {
    const lists = [...this.#lists].flatMap(([name, { file }]) => (file.exists ? [name] : []));
    if (lists.length === 0 || this.#startTime === Infinity) return undefined;
    const masters = [...this.#masters.keys()];
    const [startTime, finishTime] = [Math.round(this.#startTime), Math.round(this.#finishTime)];
    const duration = Math.round(Math.max(...this.#seconds.values()) * 1000);
    return { folder: this.#place, lists, masters, bytes: this.#bytes, duration, startTime, finishTime };
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Absolute. */
  get paths(): Pick<DumpOptions, 'outputPath' | 'infoFile'> {
    const { outputPath, infoFile } = this.#options;
    return { outputPath, ...(infoFile !== undefined && { infoFile }) };
  }

  /** Writes the past and the window, then follows the stream. @throws DumpError, DiskHangs, errors of the system; the dump has ended then */
  async start(): Promise<void> {
    const { outputPath, template, watch, past } = this.#options;
    const calls = diskCalls.of(`dumps of ${template}`, outputPath);
    let making: Promise<unknown> | undefined;
    try {
      const { folder, dev } = await calls.unlessHanging(() => {
        const made = calls.take(() => this.#make());
        making = made;
        return made;
      });
      await this.#reserve(folder);
      if (this.#ending !== undefined) throw new DumpError('it was stopped');
      this.#disk = disks.open(`device ${dev}`, undefined, outputPath);
      this.#undo.push(watch());
      const before = past?.();
      if (before === undefined) this.#follow();
      else this.#working = this.#writePast(before);
      if (this.#working !== undefined) await within(START_MS, this.#working);
      if (this.#failure !== undefined) throw this.#failure;
    } catch (error) {
      this.#fail(error as Error);
      await this.end();
      this.#release();
      // a disk that hangs may answer later, or never
      if (error instanceof DiskHangs)
        void making?.finally(() => this.#removeInfo()).catch((late: Error) => this.#warn(late));
      else await this.#removeInfo();
      throw error;
    }
  }

  /** @throws errors of the system */
  async #removeInfo(): Promise<void> {
    if (this.#infoFile !== undefined) await unlink(this.#infoFile.path).catch(unless('ENOENT'));
  }

  /** Makes the info file and the folder. @returns the folder with links resolved @throws as `start` */
  async #make(): Promise<{ readonly folder: string; readonly dev: number }> {
    const { outputPath } = this.#options;
    await this.#createInfo();
    await mkdir(outputPath, { recursive: true });
    return { folder: await realpath(outputPath), dev: (await stat(outputPath)).dev };
  }

  /** Takes the window, and then each segment as it is completed. */
  #follow(): void {
    const { follow, onEnd } = this.#options;
    let following = false;
    const take = (segment: FollowedSegment): void => this.#take(segment, following ? segment.bytes : 0);
    this.#undo.push(follow({ segment: take, end: onEnd }));
    following = true;
  }

  /** Writes the segments up to the present one by one, then follows the stream unless the dump was ended. Never rejects. */
  async #writePast(past: AsyncIterable<FollowedSegment>): Promise<void> {
    try {
      for await (const segment of past) {
        await this.#inTurn(() => this.#write(segment));
        if (performance.now() - this.#flushedAt > FLUSH_MS) await this.#inTurn(() => this.#flush(false));
      }
      if (this.#ending === undefined) this.#follow();
    } catch (error) {
      this.#fail(error as Error);
    }
    await this.#work();
  }

  /** Completes the dump with the segments so far. Never rejects. Idempotent. */
  end(): Promise<void> {
    return (this.#ending ??= this.#end());
  }

  async #end(): Promise<void> {
    this.#detach();
    await this.#working;
    if (this.#failure === undefined) {
      try {
        await this.#inTurn(() => this.#flush(true));
        this.#info.status = 'Completed';
        await this.#inTurn(async () => this.#infoFile?.update(true));
      } catch (error) {
        this.#fail(error as Error);
        await this.#giveUp();
      }
    }
    this.#release();
  }

  #release(): void {
    if (this.#folder !== undefined) inUse.delete(this.#folder);
    this.#folder = undefined;
    this.#disk?.close();
    this.#disk = undefined;
  }

  /** @param folder with links resolved @throws DumpError */
  async #reserve(folder: string): Promise<void> {
    // a dump of an earlier stream may be about to end
    const before = inUse.get(folder);
    if (before !== undefined) await before.#ending;
    if (inUse.has(folder)) throw new DumpError('Another dump writes to this output path');
    inUse.set(folder, this);
    this.#folder = folder;
    this.#place = folder;
  }

  /** @throws DumpError when the file exists; errors of the system */
  async #createInfo(): Promise<void> {
    const { infoFile } = this.#options;
    if (infoFile === undefined) return;
    await mkdir(dirname(infoFile), { recursive: true });
    try {
      await (await open(infoFile, 'wx')).close();
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? new DumpError('Duplicate info file') : error;
    }
    this.#infoFile = new GrowingFile(infoFile, this.#info);
    await this.#infoFile.update(true);
  }

  #take(segment: FollowedSegment, bytes: number): void {
    if (this.#failure !== undefined) return;
    this.#queue.push({ segment, bytes });
    this.#disk?.count(bytes);
    if (this.#disk?.isOverloaded === true) this.#fail(new DumpError('the disk is too slow'));
    this.#working ??= this.#work();
  }

  /** Writes the segments that are waiting. Never rejects. */
  async #work(): Promise<void> {
    try {
      for (let next = this.#queue[0]; next !== undefined && this.#failure === undefined; [next] = this.#queue) {
        const { segment, bytes } = next;
        await this.#inTurn(() => this.#write(segment));
        // a failure empties the queue and its count
        if (this.#queue.shift() !== undefined) this.#disk?.count(-bytes);
        if (this.#queue.length === 0 || performance.now() - this.#flushedAt > FLUSH_MS)
          await this.#inTurn(() => this.#flush(false));
      }
    } catch (error) {
      this.#fail(error as Error);
    }
    if (this.#failure !== undefined) await this.#giveUp();
    // in the same turn as the last look at the queue: later segments start another run
    this.#working = undefined;
  }

  /** Writes in this dump's turn for the disk: a disk that hangs must not block all file threads. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    return this.#disk === undefined ? write() : this.#disk.take(write);
  }

  async #write(segment: FollowedSegment): Promise<void> {
    const { outputPath } = this.#options;
    const { init, name, gap, bytes, wallClock, duration } = segment;
    const list = await this.#listOf(segment);
    if (!gap) {
      this.#seconds.set(segment.list, (this.#seconds.get(segment.list) ?? 0) + duration);
      this.#startTime = Math.min(this.#startTime, wallClock);
      this.#finishTime = Math.max(this.#finishTime, wallClock + duration * 1000);
    }
    // leading gaps only serve players of the live playlist
    if (list.has(segment) || (gap && list.empty)) return;
    if (init !== undefined && !this.#inits.has(init.name)) {
      await writeWhole(join(outputPath, init.name), [init.data]);
      this.#inits.add(init.name);
      this.#note(init.name);
    }
    if (!gap) {
      await writeWhole(join(outputPath, name), await segment.body());
      this.#note(name);
      this.#bytes += bytes;
    }
    list.add({ ...segment, ...(gap && this.#timesBeside(list, segment.msn)) });
  }

  /** Times of a segment in another playlist: an earlier dump may have ended between the segments of one number. */
  #timesBeside(list: DumpedList, msn: number): ReturnType<DumpedList['times']> {
    for (const { list: other } of this.#lists.values()) {
      const times = other === list ? undefined : other.times(msn);
      if (times !== undefined) return times;
    }
    return undefined;
  }

  async #listOf({ list: name }: FollowedSegment): Promise<DumpedList> {
    const known = this.#lists.get(name);
    if (known !== undefined) return known.list;
    const path = join(this.#options.outputPath, name);
    const list = new DumpedList(
      name,
      this.#options.continues ? await readFile(path, 'utf8').catch(unless('ENOENT')) : undefined,
    );
    this.#lists.set(name, { list, file: new GrowingFile(path, list) });
    return list;
  }

  /** Writes the playlists and the info file. @param isLast ignores rate limits */
  async #flush(isLast: boolean): Promise<void> {
    this.#flushedAt = performance.now();
    for (const { list, file } of this.#lists.values()) {
      if (list.empty) continue;
      const isNew = !file.exists;
      await file.update(isLast);
      if (isNew) this.#note(list.name);
    }
    for (const { file, text, lists } of this.#options.masters()) {
      const isReady = lists.every((name) => this.#lists.get(name)?.file.exists === true);
      const before = this.#masters.get(file);
      // its bit rates change with every segment: it is rewritten only at the end
      if (!isReady || (before === lists.join() && !isLast)) continue;
      await writeWhole(join(this.#options.outputPath, file), [Buffer.from(text)]);
      this.#masters.set(file, lists.join());
      if (before === undefined) this.#note(file);
    }
    await this.#infoFile?.update(isLast);
  }

  #note(name: string): void {
    if (this.#infoFile !== undefined) this.#info.add(join(this.#options.outputPath, name), Date.now());
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    for (const { bytes } of this.#queue.splice(0)) this.#disk?.count(-bytes);
    this.#detach();
  }

  /** Writes the playlists and the status after a failure, if the disk allows it. */
  async #giveUp(): Promise<void> {
    this.#options.log.error({ event: 'dump.failed', reason: this.#failure?.message }, 'the HLS dump has failed');
    this.#info.status = 'Error';
    await this.#inTurn(() => this.#flush(true)).catch((error: Error) => this.#warn(error));
    await this.#inTurn(async () => this.#infoFile?.update(true)).catch((error: Error) => this.#warn(error));
    this.#release();
  }

  #warn({ message: reason }: Error): void {
    this.#options.log.warn({ reason }, 'a file of the HLS dump stays as it was');
  }

  #detach(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }
}
