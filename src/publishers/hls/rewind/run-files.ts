import { lstat, mkdir, open, readdir, rmdir, stat, statfs, unlink } from 'node:fs/promises';
import { constants } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';
import { addAll } from '../../../lib/files/write-all.ts';
import { randomId } from '../../../lib/random-id.ts';
import { appended, FILE_MODE } from './append-files.ts';
import { journalLine, readJournal, type JournalSegment, type PastSegment } from './journal.ts';
import { numberedName } from './numbered-name.ts';
import { KEY_LENGTH, MAX_MEDIA_BYTES, PACK_NAME, Packs, type Packed, type Place } from './packs.ts';

/** Segments in a journal; then another one begins, so that those of the past can be removed. */
const JOURNAL_SEGMENTS = 1000;
/** Numbers by which segments of one media playlist may be noted later than those of another. */
const LATE_NOTED = 20;
/** Segments after which a page ends with its journal. */
const PAGE_SEGMENTS = 4000;
/** Segments and initializations. */
export const FILE_NAME = /^[a-z]+_[A-Za-z0-9_]+\.(?:m4s|ts|vtt)$/;
/** Journal of all media playlists; of one, as earlier versions wrote them. */
const JOURNAL = /^run_(\d{1,15})_[A-Za-z0-9]{8}\.journal$/;
const LIST_JOURNAL = /^([a-z]+_[A-Za-z0-9_]+\.m3u8)\.(\d{1,15})\.journal$/;
/** Names of the files that this module makes, or made in earlier versions. Others in the folder are not touched. */
const OWN = [FILE_NAME, JOURNAL, LIST_JOURNAL, PACK_NAME, /^tmp_[0-9a-f]{32}$/];
/** A thousand lines of some hundred bytes, and then some. */
const MAX_JOURNAL_BYTES = 8 * 1024 * 1024;
/** Only this user may read or change what is in it. */
export const FOLDER_MODE = 0o700;

/** Segments of some journals of a run. */
export interface Page {
  /** By the file name of the media playlist. */
  readonly lists: ReadonlyMap<string, readonly PastSegment[]>;
  /** Name of the last journal of the page; undefined on the last page. */
  readonly last: string | undefined;
}

/** A segment that is complete, and its media; none for a gap. */
export interface Stored {
  readonly segment: PastSegment & { readonly list: string };
  readonly body: readonly Buffer[] | undefined;
}

/**
 * Files of one run of a stream: packs with the media of segments, initializations by their names, and a journal. The folder is
 * consistent at any moment: the journal names a segment after its media is complete. Earlier versions had a file for each segment, and a
 * journal for each media playlist.
 */
export class RunFiles {
  readonly folder: string;
  readonly packs: Packs;
  /** Journals that may still be needed, oldest first, with the highest number in each. */
  readonly #journals = new Map<string, number>();
  /** The journal that is written: its name, its lines, and the newest segment of each media playlist in it. */
  #current: { readonly file: string; lines: number; readonly noted: Map<string, PastSegment> } | undefined;
  /** Bytes of journals whose segments are known here. */
  readonly #known = new Map<string, number | undefined>();
  /** Searches in journals, one after the other. Never rejects. */
  #searches: Promise<void> = Promise.resolve();
  #isLoaded = false;
  #isMade = false;

  /** @param folder absolute; made with the first file */
  constructor(folder: string) {
    this.folder = folder;
    this.packs = new Packs(folder);
  }

  /**
   * Reads all journals. Damaged lines, such as the last one before a crash, are left out; segments without a file are gaps.
   * @param onFault called with the error of a journal that cannot be read
   * @param take calls the disk, when it is its turn
   * @returns segments by the file name of their media playlist, oldest first
   * @throws errors of the system
   */
  async load(
    onFault: (error: unknown) => void,
    take: <T>(call: () => Promise<T>) => Promise<T> = (call) => call(),
  ): Promise<ReadonlyMap<string, readonly PastSegment[]>> {
    const files = await take(() => this.#files());
    const lists = new Map<string, PastSegment[]>();
    for (const journal of journalsIn(files.keys())) {
      let last = journal.first;
      for (const { list, place, ...segment } of await take(() => this.#readJournal(journal, files, onFault))) {
        last = Math.max(last, segment.msn);
        addTo(lists, list, segment);
        if (place !== undefined && !segment.gap) this.packs.add(segment.name, place);
      }
      this.#journals.set(journal.file, Math.max(last, this.#journals.get(journal.file) ?? 0));
    }
    for (const name of files.keys()) if (PACK_NAME.test(name)) this.packs.adopt(name);
    this.#isLoaded = true;
    return lists;
  }

  /**
   * Reads some journals, as `load` does.
   * @param after name of the journal before the first one; undefined for all
   * @returns their segments, and the name of the last journal unless it was the last of all
   * @throws errors of the system
   */
  async page(after: string | undefined, onFault: (error: unknown) => void): Promise<Page> {
    const files = await this.#files();
    const lists = new Map<string, PastSegment[]>();
    const [begin] = journalsIn([after ?? '']);
    const journals = journalsIn(files.keys()).filter((journal) => begin === undefined || compare(journal, begin) > 0);
    let count = 0;
    for (const [index, journal] of journals.entries()) {
      const segments = await this.#readJournal(journal, files, onFault);
      for (const { list, place: _, ...segment } of segments) addTo(lists, list, segment);
      count += segments.length;
      if (count >= PAGE_SEGMENTS && index < journals.length - 1) return { lists, last: journal.file };
    }
    return { lists, last: undefined };
  }

  /** Names of all files, with the bytes of packs and of journals of all media playlists. */
  async #files(): Promise<Map<string, number>> {
    const files = new Map<string, number>();
    for (const name of (await readdir(this.folder).catch(unless('ENOENT'))) ?? []) {
      const isSized = PACK_NAME.test(name) || JOURNAL.test(name);
      const facts = isSized ? await lstat(join(this.folder, name)).catch(unless('ENOENT')) : undefined;
      files.set(name, facts?.isFile() === true ? facts.size : 0);
    }
    return files;
  }

  async #readJournal(
    { file, list: own }: JournalName,
    files: ReadonlyMap<string, number>,
    onFault: (error: unknown) => void,
  ): Promise<(JournalSegment & { readonly list: string })[]> {
    const journal = await readOwnFile(join(this.folder, file), MAX_JOURNAL_BYTES).catch(onFault);
    if (journal === undefined) return [];
    const stored = readJournal(journal.toString());
    // each has a thousand segments
    await turn();
    const isThere = ({ name, place }: JournalSegment): boolean =>
      place === undefined ? files.has(name) : place.at + place.bytes <= (files.get(place.pack) ?? -1);
    return stored.flatMap((segment) => {
      const list = segment.list ?? own;
      return list === undefined ? [] : [{ ...segment, list, gap: segment.gap || !isThere(segment) }];
    });
  }

  /** Creates a file, or replaces one that an earlier run of the server began. @throws errors of the system */
  async write(name: string, body: readonly Buffer[]): Promise<void> {
    await this.#make();
    const path = join(this.folder, name);
    await writeNew(path, body).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') await this.#lost();
      if (error.code !== 'EEXIST') throw error;
      await replaceFile(path, (temporary) => writeNew(temporary, body));
    });
  }

  /** Writes the media of segments, and notes them, by two calls for all of them. @throws errors of the system: they are not to be listed then */
  async store(segments: readonly Stored[]): Promise<void> {
    await this.#make();
    try {
      const media = segments.flatMap(({ segment: { name, msn }, body }): Packed[] =>
        body === undefined ? [] : [{ name, msn, body }],
      );
      const places = new Map<string, Place>();
      for (const [index, place] of (await this.packs.append(media)).entries())
        places.set((media[index] as Packed).name, place);
      await this.#note(segments, places);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.#lost();
      throw error;
    }
  }

  /** The folder is gone, with all that was written to it. */
  async #lost(): Promise<void> {
    this.#isMade = false;
    await this.close();
  }

  async #note(segments: readonly Stored[], places: ReadonlyMap<string, Place>): Promise<void> {
    const [first] = segments;
    if (first === undefined) return;
    // one that was there before may end in the middle of a line
    if (this.#current === undefined || this.#current.lines >= JOURNAL_SEGMENTS) {
      await this.#endJournal();
      const { msn } = first.segment;
      const file = `run_${msn}_${randomId(KEY_LENGTH)}.journal`;
      this.#journals.set(file, msn);
      this.#current = { file, lines: 0, noted: new Map() };
    }
    const { file, noted } = this.#current;
    let lines = '';
    for (const { segment } of segments) {
      const { list, name } = segment;
      const place = places.get(name);
      lines += journalLine(segment, noted.get(list), { list, ...(place !== undefined && { place }) });
      noted.set(list, segment);
      this.#journals.set(file, Math.max(segment.msn, this.#journals.get(file) ?? 0));
    }
    try {
      await appended.append(join(this.folder, file), lines);
      this.#current.lines += segments.length;
    } catch (error) {
      // it may end in the middle of a line now
      await this.#endJournal();
      throw error;
    }
  }

  async #endJournal(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (current !== undefined) await appended.close(join(this.folder, current.file));
  }

  /**
   * Reads a segment, or an initialization.
   * @throws errors of the system, ELOOP for a link among them; Error for anything else that is no file, too long, or cut off
   */
  async read(name: string): Promise<Buffer> {
    const place = this.packs.find(name);
    if (place !== undefined) return await this.packs.read(place);
    try {
      return await readOwnFile(join(this.folder, name), MAX_MEDIA_BYTES);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || this.#isLoaded) throw error;
      const search = this.#searches.then(() => this.packs.find(name) ?? this.#locate(name));
      this.#searches = search.then(
        () => undefined,
        () => undefined,
      );
      const found = await search;
      if (found === undefined) throw error;
      return await this.packs.read(found);
    }
  }

  /** Finds a segment of a run that another node, or no node, writes. */
  async #locate(name: string): Promise<Place | undefined> {
    const { msn } = numberedName(name) ?? {};
    if (msn === undefined) return undefined;
    const files = await this.#files();
    this.packs.keep(files);
    for (const file of this.#known.keys()) if (!files.has(file)) this.#known.delete(file);
    const near = journalsIn(files.keys()).filter(({ first, list }) => list === undefined && first <= msn + LATE_NOTED);
    for (const journal of near.reverse()) {
      // one that is still written may name it by now
      const bytes = files.get(journal.file);
      if (this.#known.get(journal.file) === bytes) continue;
      for (const { name: one, place, gap } of await this.#readJournal(journal, files, () => {}))
        if (place !== undefined && !gap && this.packs.find(one) === undefined) this.packs.add(one, place);
      this.#known.set(journal.file, bytes);
      const found = this.packs.find(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Removes a segment, an initialization or a journal. Idempotent. @returns whether a file is gone @throws errors of the system */
  async remove(name: string): Promise<boolean> {
    const isPackGone = await this.packs.remove(name);
    if (isPackGone !== undefined) return isPackGone;
    try {
      await unlink(join(this.folder, name));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return false;
    }
  }

  /**
   * Forgets journals that name only segments that have left.
   * @param first number of the oldest listed segment of any media playlist
   * @returns their names, each once: they are to be removed
   */
  oldJournals(first: number): string[] {
    const old: string[] = [];
    for (const [file, last] of this.#journals) if (last < first && file !== this.#current?.file) old.push(file);
    for (const file of old) this.#journals.delete(file);
    return old;
  }

  /** Free bytes of the disk. @throws errors of the system */
  async free(): Promise<number> {
    await this.#make();
    let facts = await statfs(this.folder).catch(unless('ENOENT'));
    if (facts === undefined) {
      await this.#lost();
      await this.#make();
      facts = await statfs(this.folder);
    }
    return facts.bavail * facts.bsize;
  }

  /** Time of the last change, in milliseconds since the epoch; undefined without a folder. @throws errors of the system */
  async changedAt(): Promise<number | undefined> {
    return (await stat(this.folder).catch(unless('ENOENT')))?.mtimeMs;
  }

  /** Removes all files that this module makes, and the folder if it is empty then. @throws errors of the system */
  async removeAll(): Promise<void> {
    for (const name of (await readdir(this.folder).catch(unless('ENOENT'))) ?? [])
      if (OWN.some((form) => form.test(name))) await unlink(join(this.folder, name)).catch(unless('ENOENT'));
    await removeEmpty(this.folder);
  }

  /** Closes the files that are written. Idempotent. @throws errors of the system */
  async close(): Promise<void> {
    await this.#endJournal();
    await this.packs.end();
  }

  async #make(): Promise<void> {
    if (this.#isMade) return;
    await mkdir(this.folder, { recursive: true, mode: FOLDER_MODE });
    if (!(await lstat(this.folder)).isDirectory()) throw new Error(`no folder of this server: ${this.folder}`);
    this.#isMade = true;
  }
}

/** Writes a new file, by as few calls of the system as there can be; none stays on failure. @throws errors of the system */
async function writeNew(path: string, body: readonly Buffer[]): Promise<void> {
  const file = await open(path, 'wx', FILE_MODE);
  try {
    await addAll(file, body);
  } catch (error) {
    // the first error is the reason
    await unlink(path).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

/** Reads a file that is no link. @throws errors of the system, ELOOP for a link among them; Error for anything else that is no file, or too long */
export async function readOwnFile(path: string, mostBytes: number): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > mostBytes) throw new Error(`no file of this server: ${path}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Removes a folder if it is empty. Idempotent. @throws errors of the system */
export async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error;
  });
}

interface JournalName {
  readonly file: string;
  /** File name of its media playlist; undefined for a journal of all. */
  readonly list: string | undefined;
  /** Number of its first segment. */
  readonly first: number;
}

/** Journals among the files of a folder, in the order of their segments. */
function journalsIn(names: Iterable<string>): JournalName[] {
  const found: JournalName[] = [];
  for (const name of names) {
    const [, first] = JOURNAL.exec(name) ?? [];
    const [, list, number] = LIST_JOURNAL.exec(name) ?? [];
    const begin = first ?? number;
    if (begin !== undefined) found.push({ file: name, list, first: Number(begin) });
  }
  return found.sort(compare);
}

function compare(one: JournalName, other: JournalName): number {
  return one.first - other.first || (one.file < other.file ? -1 : one.file > other.file ? 1 : 0);
}

function addTo(lists: Map<string, PastSegment[]>, list: string, segment: PastSegment): void {
  const all = lists.get(list) ?? [];
  lists.set(list, all);
  all.push(segment);
}
