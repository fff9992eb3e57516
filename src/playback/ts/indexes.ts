import { kilnError } from '../../errors.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { Limiter } from '../../lib/limiter.ts';
import { pause } from '../../lib/pause.ts';
import { SharedWork } from '../../lib/shared-work.ts';
import type { Logger } from '../../log/log.ts';
import type { DerivedFiles } from '../../recording/finished/derived-files.ts';
import type { ByteSource } from '../byte-source.ts';
import { ClipError } from '../clip/error.ts';
import { indexBytes, type TsPart } from './part.ts';
import { scanTs } from './scan.ts';
import { decodeIndex, encodeIndex, MAX_INDEX_BYTES } from './stored-index.ts';

/** Files that are read for an index at a time because viewers wait, and that wait for it. */
const MAX_SCANS = 2;
const MAX_WAITING = 64;
/** Memory of all indexes: some 30 hours of video. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_FAILED = 1000;
/** Pause of a scan ahead of viewers, as a multiple of the time that it worked before. */
const REST = 3;

type Parts = readonly TsPart[];

/** A whole file of this node. */
export interface ScannedFile extends ByteSource {
  /** Differs when the file has changed; its index is not stored where it is absent. */
  readonly stamp?: string;
  /** Whether the file still has its name. */
  isThere?(): Promise<boolean>;
}

interface Making {
  readonly work: SharedWork<Parts>;
  /** Whether a viewer waits for it. */
  isUrgent: boolean;
}

export interface TsIndexesOptions {
  readonly derived: DerivedFiles;
  readonly log: Logger;
}

/**
 * Indexes of MPEG-TS files of this node: each is made by a scan of its file, when that is finished or played, and stored. Those of
 * files that were played are kept in memory as long as there is room.
 */
export class TsIndexes {
  readonly #options: TsIndexesOptions;
  readonly #scans = new Limiter(MAX_SCANS, MAX_WAITING);
  /** By id of the recording and stamp; those that were used last at the end. */
  readonly #known = new Map<string, Parts>();
  readonly #making = new Map<string, Making>();
  /** Why files cannot be played, by id and stamp: they stay as they are. */
  readonly #failed = new BoundedMap<string, ClipError>(MAX_FAILED);
  readonly #storing = new Set<Promise<void>>();
  #bytes = 0;
  #isStored = true;

  constructor(options: TsIndexesOptions) {
    this.#options = options;
  }

  /**
   * Finds the parts of a file for a viewer. A scan ends when no viewer waits for it any more.
   * @param file the whole file of the recording
   * @throws as `scanTs`; playbackBusy
   */
  async find(id: string, file: ScannedFile, signal?: AbortSignal): Promise<Parts> {
    const key = keyOf(id, file);
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#known.delete(key);
      this.#known.set(key, known);
      return known;
    }
    const parts = await this.#make(id, file, true, signal);
    this.#keep(key, parts);
    return parts;
  }

  /** Stores the index of a file that no viewer waits for, in little of this node's time. @throws as `find` */
  async prepare(id: string, file: ScannedFile, signal: AbortSignal): Promise<void> {
    if (file.stamp === undefined || this.#known.has(keyOf(id, file))) return;
    await this.#make(id, file, false, signal);
    await this.settled();
  }

  /** Resolves when the indexes of files that were scanned are stored. */
  async settled(): Promise<void> {
    await Promise.all(this.#storing);
  }

  async #make(id: string, file: ScannedFile, isUrgent: boolean, signal?: AbortSignal): Promise<Parts> {
    const key = keyOf(id, file);
    const failure = this.#failed.get(key);
    if (failure !== undefined) throw failure;
    let making = this.#making.get(key);
    if (making === undefined || making.work.isLeft) {
      const own: Making = { isUrgent, work: new SharedWork((stop) => this.#read(id, file, stop, () => own.isUrgent)) };
      making = own;
      this.#making.set(key, own);
    }
    making.isUrgent ||= isUrgent;
    const { work } = making;
    try {
      return await work.join(signal);
    } finally {
      if ((work.isDone || work.isLeft) && this.#making.get(key) === making) this.#making.delete(key);
    }
  }

  async #read(id: string, file: ScannedFile, stop: AbortSignal, isUrgent: () => boolean): Promise<Parts> {
    const stored = await this.#stored(id, file);
    if (stored !== undefined) return stored;
    const scan = async (): Promise<Parts> => {
      stop.throwIfAborted();
      const rest = async (workedMs: number) => {
        if (!isUrgent()) await pause(REST * workedMs, stop);
      };
      try {
        return await scanTs(file, stop, rest);
      } catch (error) {
        if (error instanceof ClipError) this.#failed.set(keyOf(id, file), error);
        throw error;
      }
    };
    // those ahead of viewers come one at a time
    const parts = isUrgent()
      ? await this.#scans.run(scan, () => kilnError('playbackBusy', MAX_SCANS + MAX_WAITING))
      : await scan();
    const storing = this.#store(id, file, parts).finally(() => this.#storing.delete(storing));
    this.#storing.add(storing);
    return parts;
  }

  async #stored(id: string, { stamp }: ScannedFile): Promise<Parts | undefined> {
    if (stamp === undefined) return undefined;
    try {
      const bytes = await this.#options.derived.read(id, MAX_INDEX_BYTES);
      return bytes && decodeIndex(bytes, stamp);
    } catch (error) {
      this.#note(error as Error);
      return undefined;
    }
  }

  /** Never rejects: without its index a file is scanned again. */
  async #store(id: string, { stamp, isThere }: ScannedFile, parts: Parts): Promise<void> {
    if (stamp === undefined || isThere === undefined) return;
    try {
      await this.#options.derived.write(id, encodeIndex(stamp, parts), isThere);
      this.#isStored = true;
    } catch (error) {
      this.#note(error as Error);
    }
  }

  /** Logs the first failure of a row. */
  #note({ message: reason }: Error): void {
    if (!this.#isStored) return;
    this.#isStored = false;
    this.#options.log.warn(
      { reason },
      'the index of a recording in MPEG-TS could not be stored or read: its file is read again when it is played',
    );
  }

  #keep(key: string, parts: Parts): void {
    if (this.#known.has(key)) return;
    this.#known.set(key, parts);
    this.#bytes += indexBytes(parts);
    for (const [oldest, others] of this.#known) {
      if (this.#bytes <= MAX_BYTES || oldest === key) break;
      this.#known.delete(oldest);
      this.#bytes -= indexBytes(others);
    }
  }
}

function keyOf(id: string, { stamp = '' }: ScannedFile): string {
  return `${id} ${stamp}`;
}
