import { appendFile, mkdir, open, readdir, rmdir, stat, statfs, unlink, writeFile } from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';

const FileName = Type.String({ pattern: '^[a-z]+_[A-Za-z0-9_]+\\.(m4s|ts)$', maxLength: 200 });

/** Line of a journal: a segment of a media playlist. */
const JournalEntry = Type.Object({
  name: FileName,
  msn: Type.Integer({ minimum: 0, maximum: 1e14 }),
  /** Seconds. */
  duration: Type.Number({ minimum: 0, maximum: 1e6 }),
  /** Milliseconds since the epoch. */
  wallClock: Type.Number({ minimum: 0, maximum: 8e15 }),
  discontinuity: Type.Boolean(),
  discontinuitySequence: Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }),
  gap: Type.Boolean(),
  breaks: Type.String({ pattern: '^(#EXT-X-[^\\n]*\\n)*$' }),
  init: Type.Optional(Type.Object({ name: FileName })),
});
export type JournalEntry = Static<typeof JournalEntry>;

/** Segments in a journal; then another one begins, so that those of the past can be removed. */
const JOURNAL_SEGMENTS = 1000;
const JOURNAL = /^([a-z]+_[A-Za-z0-9_]+\.m3u8)\.(\d{1,15})\.journal$/;
/** Names of the files that this module makes. Others in the folder are not touched. */
const OWN = /^(?:[a-z]+_[A-Za-z0-9_]+\.(?:m4s|ts)|[a-z]+_[A-Za-z0-9_]+\.m3u8\.\d{1,15}\.journal|tmp_[0-9a-f]{32})$/;
/** Only this user may read or change the files. */
export const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Files of one run of a stream: segments and initializations by their names, and a journal of each media playlist. The folder is
 * consistent at any moment: a journal names a segment after its file is complete.
 */
export class RunFiles {
  readonly folder: string;
  /** First numbers of the journals of each media playlist, oldest first. */
  readonly #journals = new Map<string, number[]>();
  #isMade = false;

  /** @param folder absolute; made with the first file */
  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Reads all journals. Damaged lines, such as the last one before a crash, are left out; segments without a file are gaps.
   * @returns segments by the file name of their media playlist, oldest first
   * @throws errors of the system
   */
  async load(): Promise<ReadonlyMap<string, readonly JournalEntry[]>> {
    const names = new Set((await readdir(this.folder).catch(unless('ENOENT'))) ?? []);
    const lists = new Map<string, JournalEntry[]>();
    const isEntry = Compile(JournalEntry);
    for (const { list, first } of journalsIn(names)) {
      this.#journals.set(list, [...(this.#journals.get(list) ?? []), first]);
      const text = (await this.read(journalName(list, first))).toString();
      const segments = lists.get(list) ?? [];
      lists.set(list, segments);
      for (const line of text.split('\n')) {
        const entry = parsed(line);
        if (isEntry.Check(entry)) segments.push({ ...entry, gap: entry.gap || !names.has(entry.name) });
      }
    }
    return lists;
  }

  /** Creates or replaces a file. @throws errors of the system */
  async write(name: string, body: readonly Buffer[]): Promise<void> {
    await this.#make();
    await replaceFile(
      join(this.folder, name),
      async (temporary) => await writeFile(temporary, body, { flag: 'wx', mode: FILE_MODE }),
    );
  }

  /** Notes a segment whose file is complete, or that has none. @throws errors of the system */
  async note(list: string, entry: JournalEntry): Promise<void> {
    await this.#make();
    const journals = this.#journals.get(list) ?? [];
    this.#journals.set(list, journals);
    const newest = journals.at(-1);
    if (newest === undefined || entry.msn >= newest + JOURNAL_SEGMENTS) journals.push(entry.msn);
    const path = join(this.folder, journalName(list, journals.at(-1) as number));
    await appendFile(path, `${JSON.stringify(entry)}\n`, { mode: FILE_MODE });
  }

  /** @throws errors of the system, ELOOP for a link among them */
  async read(name: string): Promise<Buffer> {
    const file = await open(join(this.folder, name), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      return await file.readFile();
    } finally {
      await file.close();
    }
  }

  /** Idempotent. @throws errors of the system */
  async remove(name: string): Promise<void> {
    await unlink(join(this.folder, name)).catch(unless('ENOENT'));
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

  async #make(): Promise<void> {
    if (this.#isMade) return;
    await mkdir(this.folder, { recursive: true, mode: FOLDER_MODE });
    this.#isMade = true;
  }
}

/** Removes a folder if it is empty. Idempotent. @throws errors of the system */
export async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error;
  });
}

/** Journals among the files of a folder, in the order of their segments. */
function journalsIn(names: Iterable<string>): { list: string; first: number }[] {
  const found: { list: string; first: number }[] = [];
  for (const name of names) {
    const [, list, first] = JOURNAL.exec(name) ?? [];
    if (list !== undefined && first !== undefined) found.push({ list, first: Number(first) });
  }
  return found.sort((one, other) => one.first - other.first);
}

/** Value of a line; undefined if it is no JSON. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function journalName(list: string, first: number): string {
  return `${list}.${first}.journal`;
}
