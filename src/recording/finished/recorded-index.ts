import { randomBytes } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Compile } from 'typebox/compile';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { KeyedMutex } from '../../lib/files/keyed-mutex.ts';
import { unless } from '../../lib/files/unless.ts';
import type { Logger } from '../../log/log.ts';
import { containerOf } from '../container.ts';
import { valuesOf } from '../finish.ts';
import type { FinishedFile, NamedSubtitles } from '../journal.ts';
import { partsOf } from '../settings.ts';
import { describeFiles } from './dump-files.ts';
import { endOf, Entry, hourOf, idOf, timeOf, type IndexedSubtitles, type Keeper, type Upload } from './entry.ts';
import { appendLine, killLines, readLines, removeFile, type Line } from './hour-file.ts';
import { hourPath, hoursOf, lengthen, longestOf } from './hours.ts';
import { Totals } from './totals.ts';

export interface ApplicationNames {
  readonly vhost: string;
  readonly app: string;
}

export interface Query {
  /** Limit of entries. */
  readonly limit: number;
  /** Only entries after it. */
  readonly cursor?: string | undefined;
  readonly stream?: string | undefined;
  /** Id of the task. */
  readonly recordId?: string | undefined;
  /** Only files with media of this span, in milliseconds since the epoch. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

/** An HLS dump that has ended. */
export interface DumpedFolder extends ApplicationNames {
  /** Absolute, with links resolved. */
  readonly folder: string;
  readonly id: string;
  readonly stream: string;
  /** Name of the input stream. */
  readonly source: string;
  readonly userData?: string;
  /** File names of its media playlists and master playlists. */
  readonly lists: readonly string[];
  readonly masters: readonly string[];
  /** Absolute. */
  readonly infoFile?: string;
  readonly container: string;
  readonly bytes: number;
  /** Milliseconds. */
  readonly duration: number;
  /** Times of its media, in milliseconds since the epoch. */
  readonly startTime: number;
  readonly finishTime: number;
}

/** A finished file and its id. */
export interface Recorded {
  readonly id: string;
  readonly entry: Entry;
}

export interface Page {
  /** In the order of time. */
  readonly recorded: readonly Recorded[];
  /** Place at which to go on; undefined at the end. */
  readonly cursor: string | undefined;
}

export interface RecordedIndexOptions {
  /** Folder of this node alone. */
  readonly folder: string;
  readonly log: Logger;
}

/** Lines after which a page ends with its hour, even if few match: a call must not last long. */
const MAX_LINES = 50_000;
/** Files whose damage is known. */
const MAX_KNOWN = 1000;

const check = Compile(Entry);

/**
 * Index of the finished files of this node: a file for each application and hour, with a line for each recorded file that
 * began in it. Nothing is read before it is asked for, and nothing kept.
 */
export class RecordedIndex {
  readonly #options: RecordedIndexOptions;
  /** By index file. */
  readonly #mutex = new KeyedMutex();
  /** Numbers of damaged lines that are logged, by index file. */
  readonly #damaged = new BoundedMap<string, number>(MAX_KNOWN);
  readonly #totals: Totals;

  constructor(options: RecordedIndexOptions) {
    this.#options = options;
    this.#totals = new Totals((folder, onEntry) => this.#readAll(folder, onEntry));
  }

  /** Adds a file that has its name; nothing for one that is gone. Idempotent. @throws errors of the system */
  async add(file: FinishedFile): Promise<void> {
    const found = await lstat(file.filePath).catch(unless('ENOENT'));
    if (found === undefined) return;
    const { root, filePath, pathBelow: path, tracks, subtitles, delivery, recordTime, finishTime } = file;
    const { transactionId, id, metadata, vhost, app, stream, source, sequence, createdTime, startTime } = file;
    const entry: Entry = {
      ...{ transactionId, id, vhost, app, stream, source, sequence, createdTime, startTime, finishTime, recordTime },
      ...(metadata !== undefined && { metadata }),
      ...{ root, path, filePath },
      infoPath: partsOf(file, valuesOf(file, finishTime)).info.join('/'),
      container: containerOf(filePath).name,
      ...(tracks !== undefined && { tracks }),
      ...(subtitles !== undefined && { subtitles: await sized(filePath, subtitles) }),
      inode: found.ino,
      size: found.size,
      isLocal: true,
      ...(delivery?.uploaded === true && { upload: { state: 'waiting' } }),
    };
    await this.#append(idOf(startTime, file.temporary), entry);
  }

  /** Adds a dump that has ended. @throws errors of the system */
  async addDump(dump: DumpedFolder): Promise<void> {
    const { folder: root, lists, masters, infoFile, userData, bytes, duration, ...rest } = dump;
    const [path = ''] = [...masters, ...lists];
    const [own, others] = await Promise.all([
      describeFiles(lists.map((name) => join(root, name))),
      describeFiles([...masters.map((name) => join(root, name)), ...(infoFile === undefined ? [] : [infoFile])]),
    ]);
    await this.#append(`${timeOf(dump.startTime)}-${randomBytes(16).toString('hex')}`, {
      ...rest,
      ...(userData !== undefined && { metadata: userData }),
      ...{ root, path, filePath: join(root, path), infoPath: infoFile ?? '', transactionId: '', sequence: 0, inode: 0 },
      ...{ createdTime: dump.startTime, recordTime: duration, size: bytes, isLocal: true },
      dump: { lists: own, others },
    });
  }

  async #append(key: string, entry: Entry): Promise<void> {
    const { startTime, finishTime } = entry;
    const folder = this.#folder(entry);
    await mkdir(folder, { recursive: true });
    await this.#mutex.run(folder, () => lengthen(folder, finishTime - startTime));
    await this.#inHour(folder, key, async (path) => {
      await appendLine(path, key, JSON.stringify(entry));
      this.#totals.add(folder, entry);
    });
  }

  /** Lists files in the order of time. @throws errors of the system */
  async page(application: ApplicationNames, query: Query): Promise<Page> {
    const { limit, cursor = '', start, end } = query;
    const folder = this.#folder(application);
    const longest = start === undefined ? 0 : await longestOf(folder);
    const first = start === undefined ? '' : timeOf(start - longest);
    const after = cursor > first ? cursor : first;
    const before = end === undefined ? undefined : timeOf(end);
    const pieces = piecesOf(query);
    const recorded: Recorded[] = [];
    let lines = 0;
    for (const hour of await hoursOf(folder)) {
      if (endOf(hour) <= after) continue;
      if (before !== undefined && hour > hourOf(before)) break;
      const found = new Smallest(limit - recorded.length + 1);
      lines += await this.#read(folder, hour, (line) => {
        const { id } = line;
        if (id <= after || (before !== undefined && id >= before) || !found.wants(id) || !line.has(pieces)) return true;
        const entry = entryOf(line);
        if (entry !== undefined && matches(entry, query)) found.put({ id, entry });
        return entry !== undefined;
      });
      recorded.push(...found.items);
      if (recorded.length > limit) {
        recorded.length = limit;
        return { recorded, cursor: recorded.at(-1)?.id };
      }
      if (lines >= MAX_LINES) return { recorded, cursor: endOf(hour) };
    }
    return { recorded, cursor: undefined };
  }

  /** @returns undefined for an unknown id; @throws errors of the system */
  async find(application: ApplicationNames, id: string): Promise<Entry | undefined> {
    let entry: Entry | undefined;
    await this.#read(this.#folder(application), hourOf(id), (line) => {
      if (line.id !== id) return true;
      const found = entryOf(line);
      entry = found ?? entry;
      return found !== undefined;
    });
    return entry;
  }

  /** Notes the end of an upload; nothing for an unknown id. @throws errors of the system */
  async note(application: ApplicationNames, id: string, upload: Upload, isLocal: boolean): Promise<void> {
    const folder = this.#folder(application);
    await this.#inHour(folder, id, async (path) => {
      const entry = await this.find(application, id);
      if (entry === undefined) return;
      const { places } = await placesOf(path, id);
      await appendLine(path, id, JSON.stringify({ ...entry, upload, isLocal }));
      await killLines(path, places);
      if (entry.isLocal && !isLocal) this.#totals.remove(folder, entry);
    });
  }

  /** Removes entries. Idempotent. @throws errors of the system */
  async remove(application: ApplicationNames, ids: readonly string[]): Promise<void> {
    const folder = this.#folder(application);
    for (const [id = '', ...more] of Object.values(Object.groupBy(ids, hourOf)) as string[][]) {
      await this.#inHour(folder, id, async (path) => {
        const { places, others, entries } = await placesOf(path, id, ...more);
        if (others === 0) await removeFile(path);
        else if (places.length > 0) await killLines(path, places);
        for (const entry of entries) this.#totals.remove(folder, entry);
      });
    }
  }

  /**
   * Sum of the sizes of files, or dumps of a module, that are on this node. The first call reads all of an application, the others nothing.
   * @throws errors of the system
   */
  async total(application: ApplicationNames, keeper: Keeper = 'file'): Promise<number> {
    return await this.#totals.of(this.#folder(application), keeper);
  }

  async #readAll(folder: string, onEntry: (entry: Entry) => void): Promise<void> {
    for (const hour of await hoursOf(folder)) {
      await this.#read(folder, hour, (line) => {
        const entry = entryOf(line);
        if (entry !== undefined) onEntry(entry);
        return entry !== undefined;
      });
    }
  }

  async #inHour(folder: string, id: string, step: (path: string) => Promise<void>): Promise<void> {
    await this.#totals.measured(folder);
    const path = hourPath(folder, hourOf(id));
    await this.#mutex.run(path, () => step(path));
  }

  /** @param onLine returns whether the line is valid @returns the number of lines */
  async #read(folder: string, hour: string, onLine: (line: Line) => boolean): Promise<number> {
    const path = hourPath(folder, hour);
    let invalid = 0;
    const { lines, damaged } = await readLines(path, (line) => {
      if (!onLine(line)) invalid++;
    });
    const bad = damaged + invalid;
    if (bad > (this.#damaged.get(path) ?? 0)) {
      this.#damaged.set(path, bad);
      this.#options.log.warn(
        { file: path, lines: bad },
        'the index of recordings has lines that cannot be read: their files are not listed',
      );
    }
    return lines;
  }

  #folder({ vhost, app }: ApplicationNames): string {
    return join(this.#options.folder, `${encodeURIComponent(vhost)}#${encodeURIComponent(app)}`);
  }
}

/** Subtitles with the sizes of their files, as far as these are there. @throws errors of the system */
async function sized(filePath: string, subtitles: readonly NamedSubtitles[]): Promise<IndexedSubtitles[]> {
  return await Promise.all(
    subtitles.map(async (one) => {
      const found = await lstat(join(dirname(filePath), one.name)).catch(unless('ENOENT'));
      return found?.ino === one.inode ? { ...one, size: found.size } : one;
    }),
  );
}

/** The entries with the smallest ids, in order; the last of the same id. */
class Smallest {
  readonly items: Recorded[] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  wants(id: string): boolean {
    return this.items.length < this.#limit || id <= (this.items.at(-1)?.id ?? '');
  }

  put(recorded: Recorded): void {
    let at = this.items.length;
    while (at > 0 && (this.items[at - 1]?.id ?? '') >= recorded.id) at--;
    this.items.splice(at, this.items[at]?.id === recorded.id ? 1 : 0, recorded);
    if (this.items.length > this.#limit) this.items.pop();
  }
}

/** Pieces of the documents of entries that match, as JSON.stringify writes them: those of others need not be parsed. */
function piecesOf({ stream, recordId: id }: Query): Buffer[] {
  return Object.entries({ stream, id }).flatMap(([name, value]) =>
    value === undefined ? [] : [Buffer.from(JSON.stringify({ [name]: value }).slice(1, -1))],
  );
}

function matches({ stream, id, finishTime, startTime }: Entry, query: Query): boolean {
  if (query.stream !== undefined && query.stream !== stream) return false;
  if (query.recordId !== undefined && query.recordId !== id) return false;
  if (query.start !== undefined && finishTime <= query.start) return false;
  return query.end === undefined || startTime < query.end;
}

/** @returns undefined for a damaged line, or one of another version */
function entryOf(line: Line): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line.text());
    return check.Check(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Places of the lines of ids, the entries of these, and the number of other lines that count. */
async function placesOf(path: string, ...ids: readonly string[]) {
  const places: number[] = [];
  const entries = new Map<string, Entry>();
  let others = 0;
  const wanted = new Set(ids);
  await readLines(path, (line) => {
    if (!wanted.has(line.id)) return void others++;
    places.push(line.at);
    const entry = entryOf(line);
    if (entry !== undefined) entries.set(line.id, entry);
  });
  return { places, others, entries: [...entries.values()] };
}
