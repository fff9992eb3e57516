import { basename } from 'node:path';
import Type, { type Static } from 'typebox';
import { BackOff } from '../lib/back-off.ts';
import type { Logger } from '../log/log.ts';
import { JsonFolder } from '../lib/files/json-folder.ts';

const LONGEST_PAUSE_MS = 5 * 60_000;
/** Limit of files kept in memory that could not be handed over. */
const MAX_UNHANDED = 10_000;

/** Fields that identify a file and its recording. */
export const RECORDED = {
  transactionId: Type.String(),
  /** Id of the task. */
  id: Type.String(),
  metadata: Type.Optional(Type.String()),
  vhost: Type.String(),
  app: Type.String(),
  /** Names of the output stream and the input stream. */
  stream: Type.String(),
  source: Type.String(),
  sequence: Type.Integer(),
  /** Milliseconds since the epoch. */
  createdTime: Type.Number(),
  startTime: Type.Number(),
};

/** Format of a recorded track. */
export const RecordedTrack = Type.Object({
  type: Type.String(),
  codec: Type.String(),
  width: Type.Optional(Type.Number()),
  height: Type.Optional(Type.Number()),
  samplerate: Type.Optional(Type.Number()),
  channels: Type.Optional(Type.Number()),
});

/** Format of a track in journals and in the index. */
export const IndexedTrack = Type.Object({
  ...RecordedTrack.properties,
  /** Digest that is the same for tracks of which `sameFormat` holds. Older versions lack it. */
  format: Type.Optional(Type.String()),
});
export type IndexedTrack = Static<typeof IndexedTrack>;

/** Label and language of subtitles. */
const LABEL = { label: Type.String(), language: Type.Optional(Type.String()) };
const Label = Type.Object(LABEL);
export type Label = Static<typeof Label>;

/** Subtitles that a file has got, under their temporary name. */
const WrittenSubtitles = Type.Object({
  /** Place among its labels. */
  index: Type.Integer(),
  inode: Type.Number(),
});
export type WrittenSubtitles = Static<typeof WrittenSubtitles>;

/** Subtitles of a finished file: a WebVTT file in its folder. */
export const NamedSubtitles = Type.Object({ ...LABEL, name: Type.String(), inode: Type.Number() });
export type NamedSubtitles = Static<typeof NamedSubtitles>;

const Entry = Type.Object({
  /** Path until the file is finished. */
  temporary: Type.String(),
  /** Inode of its folder, which differs while a disk is not mounted. Older versions lack it. */
  folder: Type.Optional(Type.Number()),
  root: Type.String(),
  /** Templates of its paths below the root. */
  file: Type.String(),
  info: Type.String(),
  ...RECORDED,
  /** Tracks at its beginning. Older versions lack them. */
  tracks: Type.Optional(Type.Array(IndexedTrack)),
  /** Subtitles that it may get. Older versions lack them. */
  labels: Type.Optional(Type.Array(Label)),
  /** Steps after it is finished; none where absent. */
  delivery: Type.Optional(Type.Object({ announced: Type.Boolean(), uploaded: Type.Boolean() })),
  /** Set once the file is complete and is to get its name. */
  finished: Type.Optional(
    Type.Object({
      recordBytes: Type.Number(),
      /** Duration in milliseconds. */
      recordTime: Type.Number(),
      lastSequence: Type.Boolean(),
      /** Milliseconds since the epoch. */
      finishTime: Type.Number(),
      /** Identifies the file under its new name. */
      inode: Type.Number(),
      subtitles: Type.Optional(Type.Array(WrittenSubtitles)),
    }),
  ),
});
/** A file that this node writes. */
export type JournalEntry = Static<typeof Entry>;

/** Facts about a complete file. */
export type Finished = Omit<NonNullable<JournalEntry['finished']>, 'inode' | 'subtitles'>;

/** A file with its final name. */
export interface FinishedFile extends JournalEntry, Finished {
  /** Absolute. */
  readonly filePath: string;
  /** Path below the root. */
  readonly pathBelow: string;
  readonly subtitles?: readonly NamedSubtitles[];
}

export interface JournalOptions {
  /** Folder of this node alone. */
  readonly folder: string;
  readonly log: Logger;
  /** Accepts each finished file. @throws when it cannot: the file is handed over again */
  readonly deliver?: (file: FinishedFile) => Promise<void>;
}

/** Files that this node is writing: after a crash the next start finds and finishes them. */
export class Journal {
  readonly #options: JournalOptions;
  readonly #entries: JsonFolder<typeof Entry>;
  /** By the names of their entries. */
  readonly #unhanded = new Map<string, FinishedFile>();
  readonly #pauses = new BackOff(LONGEST_PAUSE_MS);
  #timer: NodeJS.Timeout | undefined;
  #isTrying = false;
  #closed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#entries = new JsonFolder(options.folder, Entry);
  }

  /** Adds or replaces an entry. @throws errors of the system */
  async put(entry: JournalEntry): Promise<void> {
    await this.#entries.put(nameOf(entry), entry);
  }

  /** Stores the entry of a complete file. A full disk does not prevent the file from getting its name. */
  async finish(entry: JournalEntry): Promise<void> {
    await this.put(entry).catch(({ message: reason }: Error) =>
      this.#options.log.warn(
        { file: entry.temporary, reason },
        'the recording journal could not be written: if the server is killed now, the file will not be in its info file',
      ),
    );
  }

  /** Hands over a file that has its name. Failures are tried again, also after the next start. */
  async hand(file: FinishedFile): Promise<void> {
    const { deliver, log } = this.#options;
    const name = nameOf(file);
    try {
      await deliver?.(file);
    } catch (error) {
      const { message: reason } = error as Error;
      if (!this.#unhanded.has(name))
        log.error(
          { event: 'delivery.failed', file: file.filePath, reason },
          'a finished recording could not be handed over for delivery: trying again',
        );
      // the next start hands over the others
      if (this.#unhanded.size < MAX_UNHANDED) this.#unhanded.set(name, file);
      return this.#plan();
    }
    this.#unhanded.delete(name);
    await this.remove(file).catch(({ message: reason }: Error) =>
      log.warn(
        { file: file.filePath, reason },
        'an entry of the recording journal could not be deleted: the next start delivers its file again',
      ),
    );
  }

  /** Leaves the rest to the next start. Idempotent. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #plan(): void {
    if (this.#closed || this.#isTrying) return;
    this.#timer ??= setTimeout(() => void this.#handAgain(), this.#pauses.next()).unref();
  }

  async #handAgain(): Promise<void> {
    this.#timer = undefined;
    this.#isTrying = true;
    for (const file of [...this.#unhanded.values()]) if (!this.#closed) await this.hand(file);
    this.#isTrying = false;
    if (this.#unhanded.size > 0) this.#plan();
    else this.#pauses.reset();
  }

  /** @throws errors of the system */
  async remove(entry: Pick<JournalEntry, 'temporary'>): Promise<void> {
    await this.#entries.remove(nameOf(entry));
  }

  /** Whether a file is not finished, or not handed over yet. @throws errors of the system */
  async has(temporary: string): Promise<boolean> {
    return await this.#entries.has(temporary);
  }

  /** All readable entries; unreadable ones are logged. @throws errors of the system for the folder */
  async list(): Promise<JournalEntry[]> {
    const entries: JournalEntry[] = [];
    for (const name of await this.#entries.names()) {
      try {
        const entry = await this.#entries.read(name);
        if (entry !== undefined) entries.push(entry);
      } catch (error) {
        const reason = (error as Error).message;
        this.#options.log.warn({ reason }, 'an entry of the recording journal cannot be read: its file stays as it is');
      }
    }
    return entries;
  }
}

function nameOf({ temporary }: Pick<JournalEntry, 'temporary'>): string {
  return basename(temporary);
}
