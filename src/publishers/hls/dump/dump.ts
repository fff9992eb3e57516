import { mkdir, open, readFile, realpath, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../../log/log.ts';
import { Disks, type Disk } from '../../../core/disks.ts';
import { unless } from '../../../lib/files/unless.ts';
import type { FollowedSegment, Follower } from '../answer/followers.ts';
import { GrowingFile, writeWhole } from './growing-file.ts';
import { DumpInfo } from './info.ts';
import { DumpedList } from './list.ts';

/** A master playlist for a dump. */
export interface DumpedMaster {
  /** Name of its file. */
  readonly file: string;
  readonly text: string;
  /** Names of the media playlists in it. */
  readonly lists: readonly string[];
}

/** What a dump is made of, and where it goes. */
export interface DumpOptions {
  /** Absolute. */
  readonly outputPath: string;
  readonly infoFile?: string;
  readonly userData?: string;
  /** `/vhost/app/stream` */
  readonly stream: string;
  /** Keeps on-demand encoders and pulls running. @returns a function that ends this */
  readonly watch: () => () => void;
  /** As `Package.follow`. */
  readonly follow: (follower: Follower) => () => void;
  /** The requested ones that can be played. */
  readonly masters: () => readonly DumpedMaster[];
  /** Called when the stream has ended: `end` is to be called. */
  readonly onEnd: () => void;
  /** File names are unique to this run of the stream, so media playlists of an earlier dump of it are continued. */
  readonly continues: boolean;
  readonly log: Logger;
}

/** How often playlists are written while segments are waiting. */
const FLUSH_MS = 1000;
/** How long a start waits until the window is written. */
const START_MS = 5000;

/** The folders that dumps of this process write to. */
const inUse = new Map<string, Dump>();
/** What waits for the disks of all dumps, besides the windows at their starts. */
const disks = new Disks();

/** Why a dump cannot start. */
export class DumpError extends Error {
  override readonly name = 'DumpError';
}

/**
 * Writes the segments of a stream to a folder with VOD playlists: media playlists after the segments that they name, and
 * master playlists after those. So the folder can be played at any moment, even if this process is killed.
 */
export class Dump {
  readonly #options: DumpOptions;
  readonly #info: DumpInfo;
  /** Set once this dump has created it. */
  #infoFile: GrowingFile | undefined;
  /** Oldest first, with the bytes that count towards the limit. */
  readonly #queue: { readonly segment: FollowedSegment; readonly bytes: number }[] = [];
  #disk: Disk | undefined;
  readonly #lists = new Map<string, { readonly list: DumpedList; readonly file: GrowingFile }>();
  readonly #inits = new Set<string>();
  /** The media playlists in each master playlist that was written, by file. */
  readonly #masters = new Map<string, string>();
  readonly #undo: (() => void)[] = [];
  #flushedAt = 0;
  #working: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #failure: Error | undefined;
  /** Its folder without links, while it is reserved. */
  #folder: string | undefined;

  constructor(options: DumpOptions) {
    this.#options = options;
    this.#info = new DumpInfo(options.stream, options.userData);
  }

  /** Why it has failed; undefined while it has not. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Absolute. */
  get paths(): Pick<DumpOptions, 'outputPath' | 'infoFile'> {
    const { outputPath, infoFile } = this.#options;
    return { outputPath, ...(infoFile !== undefined && { infoFile }) };
  }

  /**
   * Writes the window, then follows the stream.
   * @throws DumpError, errors of the system; the dump is over then
   */
  async start(): Promise<void> {
    const { outputPath, watch, follow, onEnd } = this.#options;
    try {
      await this.#createInfo();
      await mkdir(outputPath, { recursive: true });
      await this.#reserve(await realpath(outputPath));
      const { dev } = await stat(outputPath);
      if (this.#ending !== undefined) throw new DumpError('it was stopped');
      this.#disk = disks.open(`device ${dev}`);
      let following = false;
      const take = (segment: FollowedSegment): void => this.#take(segment, following ? segment.bytes : 0);
      this.#undo.push(watch());
      this.#undo.push(follow({ segment: take, end: onEnd }));
      following = true;
      await Promise.race([this.#working, delay(START_MS, undefined, { ref: false })]);
      if (this.#failure !== undefined) throw this.#failure;
    } catch (error) {
      this.#fail(error as Error);
      await this.end();
      this.#release();
      if (this.#infoFile !== undefined) await unlink(this.#infoFile.path).catch(unless('ENOENT'));
      throw error;
    }
  }

  /** Completes it with the segments so far. Never rejects. Idempotent. */
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

  /** @param folder without links @throws DumpError */
  async #reserve(folder: string): Promise<void> {
    // a dump of an earlier stream may be about to end
    const before = inUse.get(folder);
    if (before !== undefined) await before.#ending;
    if (inUse.has(folder)) throw new DumpError('Another dump writes to this output path');
    inUse.set(folder, this);
    this.#folder = folder;
  }

  /** @throws DumpError when there is a file of that name; what the system says */
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
        // after a failure nothing is counted any more
        if (this.#queue.shift() !== undefined) this.#disk?.count(-bytes);
        if (this.#queue.length === 0 || performance.now() - this.#flushedAt > FLUSH_MS)
          await this.#inTurn(() => this.#flush(false));
      }
    } catch (error) {
      this.#fail(error as Error);
    }
    if (this.#failure !== undefined) await this.#giveUp();
    // in the same turn as the last look at the queue: what is taken from now on needs another run
    this.#working = undefined;
  }

  /** Writes when it is the turn of this dump: a disk that hangs must not take all threads for files. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    return this.#disk === undefined ? write() : this.#disk.take(write);
  }

  async #write(segment: FollowedSegment): Promise<void> {
    const { outputPath } = this.#options;
    const { init, name, gap } = segment;
    const list = await this.#listOf(segment);
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
    }
    list.add(segment);
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

  /** Writes the playlists and the info file. @param isLast also those that are rate-limited */
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
      // its bit rates change with every segment: the final ones are written at the end
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

  /** Writes playlists of what is there and the status, if the disk allows it. */
  async #giveUp(): Promise<void> {
    const { log } = this.#options;
    log.error({ event: 'dump.failed', reason: this.#failure?.message }, 'the HLS dump has failed');
    this.#info.status = 'Error';
    const warn = ({ message: reason }: Error): void => log.warn({ reason }, 'a file of the HLS dump stays as it was');
    await this.#inTurn(() => this.#flush(true)).catch(warn);
    await this.#inTurn(async () => this.#infoFile?.update(true)).catch(warn);
    this.#release();
  }

  #detach(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }
}
