import { lstat, mkdir, open, readdir, rmdir, stat, statfs, unlink } from 'node:fs/promises';
import { constants } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';
import { appended, FILE_MODE } from './append-files.ts';
import { journalLine, readJournal, type PastSegment } from './journal.ts';

/** Segments in a journal; then another one begins, so that those of the past can be removed. */
const JOURNAL_SEGMENTS = 1000;
/** Segments after which a page ends with its journal. */
const PAGE_SEGMENTS = 4000;
/** Segments and initializations. */
export const FILE_NAME = /^[a-z]+_[A-Za-z0-9_]+\.(?:m4s|ts|vtt)$/;
const JOURNAL = /^([a-z]+_[A-Za-z0-9_]+\.m3u8)\.(\d{1,15})\.journal$/;
/** Names of the files that this module makes. Others in the folder are not touched. */
const OWN = /^(?:[a-z]+_[A-Za-z0-9_]+\.(?:m4s|ts|vtt)|[a-z]+_[A-Za-z0-9_]+\.m3u8\.\d{1,15}\.journal|tmp_[0-9a-f]{32})$/;
/** A thousand lines of some hundred bytes, and then some. */
const MAX_JOURNAL_BYTES = 8 * 1024 * 1024;
const MAX_MEDIA_BYTES = 512 * 1024 * 1024;
/** Only this user may read or change what is in it. */
export const FOLDER_MODE = 0o700;

/** Segments of some journals of a run. */
export interface Page {
  /** By the file name of the media playlist. */
  readonly lists: ReadonlyMap<string, readonly PastSegment[]>;
  /** Name of the last journal of the page; undefined on the last page. */
  readonly last: string | undefined;
}

/**
 * Files of one run of a stream: segments and initializations by their names, and a journal of each media playlist. The folder is
 * consistent at any moment: a journal names a segment after its file is complete.
 */
export class RunFiles {
  readonly folder: string;
  /** First numbers of the journals of each media playlist, oldest first. */
  readonly #journals = new Map<string, number[]>();
  /** First number of the journal that is written for each media playlist. */
  readonly #current = new Map<string, number>();
  /** Newest segment of the journal that is written for each media playlist. */
  readonly #noted = new Map<string, PastSegment>();
  #isMade = false;

  /** @param folder absolute; made with the first file */
  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Reads all journals. Damaged lines, such as the last one before a crash, are left out; segments without a file are gaps.
   * @param onFault called with the error of a journal that cannot be read
   * @returns segments by the file name of their media playlist, oldest first
   * @throws errors of the system
   */
  async load(onFault: (error: unknown) => void): Promise<ReadonlyMap<string, readonly PastSegment[]>> {
    const names = new Set((await readdir(this.folder).catch(unless('ENOENT'))) ?? []);
    const lists = new Map<string, PastSegment[]>();
    for (const { list, first } of journalsIn(names)) {
      this.#journals.set(list, [...(this.#journals.get(list) ?? []), first]);
      addTo(lists, list, await this.#readJournal(list, first, names, onFault));
    }
    return lists;
  }

  /**
   * Reads some journals, as `load` does.
   * @param after name of the journal before the first one; undefined for all
   * @returns their segments, and the name of the last journal unless it was the last of all
   * @throws errors of the system
   */
  async page(after: string | undefined, onFault: (error: unknown) => void): Promise<Page> {
    const names = new Set((await readdir(this.folder).catch(unless('ENOENT'))) ?? []);
    const lists = new Map<string, PastSegment[]>();
    const [begin] = journalsIn([after ?? '']);
    const journals = journalsIn(names).filter((journal) => begin === undefined || compare(journal, begin) > 0);
    let count = 0;
    for (const [index, { list, first }] of journals.entries()) {
      const segments = await this.#readJournal(list, first, names, onFault);
      addTo(lists, list, segments);
      count += segments.length;
      if (count >= PAGE_SEGMENTS && index < journals.length - 1) return { lists, last: journalName(list, first) };
    }
    return { lists, last: undefined };
  }

  async #readJournal(
    list: string,
    first: number,
    names: ReadonlySet<string>,
    onFault: (error: unknown) => void,
  ): Promise<PastSegment[]> {
    const journal = await this.read(journalName(list, first), MAX_JOURNAL_BYTES).catch(onFault);
    if (journal === undefined) return [];
    const stored = readJournal(journal.toString());
    // each has a thousand segments
    await turn();
    return stored.map((segment) => ({ ...segment, gap: segment.gap || !names.has(segment.name) }));
  }

  /** Creates a file, or replaces one that an earlier run of the server began. @throws errors of the system */
  async write(name: string, body: readonly Buffer[]): Promise<void> {
    await this.#make();
    const path = join(this.folder, name);
    await writeNew(path, body).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') this.#isMade = false;
      if (error.code !== 'EEXIST') throw error;
      await replaceFile(path, (temporary) => writeNew(temporary, body));
    });
  }

  /** Notes a segment whose file is complete, or that has none. @throws errors of the system */
  async note(list: string, segment: PastSegment): Promise<void> {
    await this.#make();
    const journals = this.#journals.get(list) ?? [];
    this.#journals.set(list, journals);
    const current = this.#current.get(list);
    // one that was there before may end in the middle of a line
    if (current === undefined || segment.msn >= current + JOURNAL_SEGMENTS) {
      if (current !== undefined) await appended.close(this.#pathOf(list, current));
      journals.push(segment.msn);
      this.#current.set(list, segment.msn);
      this.#noted.delete(list);
    }
    try {
      await appended.append(
        this.#pathOf(list, this.#current.get(list) as number),
        journalLine(segment, this.#noted.get(list)),
      );
      this.#noted.set(list, segment);
    } catch (error) {
      // it may end in the middle of a line now
      this.#current.delete(list);
      throw error;
    }
  }

  /**
   * @param mostBytes size of a file that is too long
   * @throws errors of the system, ELOOP for a link among them; Error for anything else that is no file, or too long
   */
  async read(name: string, mostBytes = MAX_MEDIA_BYTES): Promise<Buffer> {
    const path = join(this.folder, name);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const facts = await file.stat();
      if (!facts.isFile() || facts.size > mostBytes) throw new Error(`no file of this server: ${path}`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  }

  /** Idempotent. @returns whether there was such a file @throws errors of the system */
  async remove(name: string): Promise<boolean> {
    try {
      await unlink(join(this.folder, name));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return false;
    }
  }

  /** Whether there are journals that name only segments before a number. */
  hasOldJournals(list: string, before: number): boolean {
    const second = this.#journals.get(list)?.[1];
    return second !== undefined && second <= before;
  }

  /** Removes the journals that name only segments before a number. @throws errors of the system */
  async removeJournals(list: string, before: number): Promise<void> {
    const journals = this.#journals.get(list) ?? [];
    while (this.hasOldJournals(list, before)) await this.remove(journalName(list, journals.shift() as number));
  }

  /** Free bytes of the disk. @throws errors of the system */
  async free(): Promise<number> {
    await this.#make();
    const { bavail, bsize } = await statfs(this.folder);
    return bavail * bsize;
  }

  /** Time of the last change, in milliseconds since the epoch; undefined without a folder. @throws errors of the system */
  async changedAt(): Promise<number | undefined> {
    return (await stat(this.folder).catch(unless('ENOENT')))?.mtimeMs;
  }

  /** Removes all files that this module makes, and the folder if it is empty then. @throws errors of the system */
  async removeAll(): Promise<void> {
    for (const name of (await readdir(this.folder).catch(unless('ENOENT'))) ?? [])
      if (OWN.test(name)) await this.remove(name);
    await removeEmpty(this.folder);
  }

  /** Closes the journals. Idempotent. Never rejects. */
  async close(): Promise<void> {
    const current = [...this.#current];
    this.#current.clear();
    await Promise.all(current.map(([list, first]) => appended.close(this.#pathOf(list, first))));
  }

  #pathOf(list: string, first: number): string {
    return join(this.folder, journalName(list, first));
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
    const length = body.reduce((sum, { length: more }) => sum + more, 0);
    const { bytesWritten } = length === 0 ? { bytesWritten: 0 } : await file.writev(body);
    // such as on a disk that is full, which then says so
    if (bytesWritten < length) await file.writeFile(Buffer.concat(body).subarray(bytesWritten));
  } catch (error) {
    // the first error is the reason
    await unlink(path).catch(() => undefined);
    throw error;
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
  readonly list: string;
  /** Number of its first segment. */
  readonly first: number;
}

/** Journals among the files of a folder, in the order of their segments. */
function journalsIn(names: Iterable<string>): JournalName[] {
  const found: JournalName[] = [];
  for (const name of names) {
    const [, list, first] = JOURNAL.exec(name) ?? [];
    if (list !== undefined && first !== undefined) found.push({ list, first: Number(first) });
  }
  return found.sort(compare);
}

function compare(one: JournalName, other: JournalName): number {
  return one.first - other.first || (one.list < other.list ? -1 : one.list > other.list ? 1 : 0);
}

function addTo(lists: Map<string, PastSegment[]>, list: string, segments: readonly PastSegment[]): void {
  const all = lists.get(list) ?? [];
  lists.set(list, all);
  for (const segment of segments) all.push(segment);
}

function journalName(list: string, first: number): string {
  return `${list}.${first}.journal`;
}
