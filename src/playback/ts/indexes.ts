import { kilnError } from '../../errors.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { Limiter } from '../../lib/limiter.ts';
import { SharedWork } from '../../lib/shared-work.ts';
import type { ByteSource } from '../byte-source.ts';
import { ClipError } from '../clip/error.ts';
import { indexBytes, type TsPart } from './part.ts';
import { scanTs } from './scan.ts';

/** Files that are read for an index at a time, and that wait for it. */
const MAX_SCANS = 2;
const MAX_WAITING = 64;
/** Memory of all indexes: some 30 hours of video. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_FAILED = 1000;

type Parts = readonly TsPart[];

/** Indexes of MPEG-TS files of this node: each is made when its file is played, and kept as long as there is room. */
export class TsIndexes {
  readonly #scans = new Limiter(MAX_SCANS, MAX_WAITING);
  /** By id of the recording; those that were used last at the end. */
  readonly #known = new Map<string, Parts>();
  readonly #making = new Map<string, SharedWork<Parts>>();
  /** Why files cannot be played, by the ids of their recordings: they stay as they are. */
  readonly #failed = new BoundedMap<string, ClipError>(MAX_FAILED);
  #bytes = 0;

  /**
   * Finds the parts of a file. Its scan ends when no viewer waits for it any more.
   * @param file the whole file of the recording
   * @throws as `scanTs`; playbackBusy
   */
  async find(id: string, file: ByteSource, signal?: AbortSignal): Promise<Parts> {
    const known = this.#known.get(id);
    if (known !== undefined) {
      this.#known.delete(id);
      this.#known.set(id, known);
      return known;
    }
    const failure = this.#failed.get(id);
    if (failure !== undefined) throw failure;
    let making = this.#making.get(id);
    if (making === undefined || making.isLeft) {
      making = new SharedWork((stop) => this.#make(id, file, stop));
      this.#making.set(id, making);
    }
    const own = making;
    try {
      return await own.join(signal);
    } finally {
      if ((own.isDone || own.isLeft) && this.#making.get(id) === own) this.#making.delete(id);
    }
  }

  async #make(id: string, file: ByteSource, stop: AbortSignal): Promise<Parts> {
    const parts = await this.#scans.run(
      () => {
        stop.throwIfAborted();
        return scanTs(file, stop).catch((error: unknown) => {
          if (error instanceof ClipError) this.#failed.set(id, error);
          throw error;
        });
      },
      () => kilnError('playbackBusy', MAX_SCANS + MAX_WAITING),
    );
    this.#keep(id, parts);
    return parts;
  }

  #keep(id: string, parts: Parts): void {
    if (this.#known.has(id)) return;
    this.#known.set(id, parts);
    this.#bytes += indexBytes(parts);
    for (const [oldest, others] of this.#known) {
      if (this.#bytes <= MAX_BYTES || oldest === id) break;
      this.#known.delete(oldest);
      this.#bytes -= indexBytes(others);
    }
  }
}
