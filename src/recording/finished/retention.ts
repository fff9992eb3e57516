import { byteCount } from '../../config/values.ts';
import type { ApplicationConfig } from '../../config/model.ts';
import type { Logger } from '../../log/log.ts';
import { bytesOf, keeperOf, type Keeper } from './entry.ts';
import type { ApplicationNames, Recorded, RecordedIndex } from './recorded-index.ts';
import type { Recordings } from './recordings.ts';

/** Limits of age and size. Dumps have no Force and no uploads. */
export type Limits = Pick<
  NonNullable<ApplicationConfig['publishers']['file']>,
  'deleteAfter' | 'maxTotalSize' | 'force' | 'record'
>;

/** Files that have limits of their own: those of recordings, or dumps of one module. */
export interface Limited extends ApplicationNames {
  readonly keeper: Keeper;
}

export interface RetentionOptions {
  readonly index: RecordedIndex;
  readonly recordings: Recordings;
  /** Applications that record or dump, and their present limits. */
  readonly applications: () => Iterable<Limited & { readonly limits: Limits }>;
  readonly log: Logger;
}

/** Files that an application keeps, in bytes. */
export interface Kept extends Limited {
  readonly bytes: number;
  readonly limit: number;
}

interface Deletion {
  readonly reason: 'age' | 'space';
  /** Only files that began earlier, in milliseconds since the epoch. */
  readonly end?: number;
  readonly isDue: (recorded: Recorded) => boolean;
  readonly isEnough: () => boolean;
}

const EVERY_MS = 60_000;
const PAGE = 500;
/** Limit of files that one look at an application finds and must keep. */
const MAX_KEPT = 10_000;
/** Shares of MaxTotalSize at which a warning is given, and may be given again. */
const SHORT = 0.9;
const RELAXED = 0.8;

/** Deletes finished files and dumps of this node by age, and the oldest when they are too large together. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #kept = new Map<string, Kept>();
  /** Applications for which a warning was given. */
  readonly #short = new Set<string>();
  /** Cursors from which the next look goes on. */
  readonly #places = new Map<string, string>();
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** Applications with a MaxTotalSize. */
  get kept(): readonly Kept[] {
    return [...this.#kept.values()];
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.look(), EVERY_MS).unref();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await this.#looking;
  }

  /** Deletes what is due, once for all who ask at the same time. Never rejects: failures are logged. */
  look(): Promise<void> {
    this.#looking ??= this.#lookAtAll().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #lookAtAll(): Promise<void> {
    const seen = new Set<string>();
    for (const { limits, vhost, app, keeper } of this.#options.applications()) {
      if (this.#stop.signal.aborted) return;
      const name = `${vhost}/${app}${keeper === 'file' ? '' : ` (${keeper})`}`;
      seen.add(name);
      try {
        await this.#lookAt({ vhost, app, keeper }, name, limits);
      } catch (error) {
        const { message: reason } = error as Error;
        this.#options.log.warn(
          { event: 'record.kept', application: name, reason },
          'finished recordings could not be deleted: it is tried again',
        );
      }
    }
    for (const name of this.#kept.keys()) if (!seen.has(name)) this.#forget(name);
  }

  async #lookAt(limited: Limited, name: string, limits: Limits): Promise<void> {
    const { deleteAfter, maxTotalSize } = limits;
    if (deleteAfter !== undefined) {
      const expiry = Date.now() - deleteAfter * 1000;
      const isDue = ({ entry }: Recorded): boolean => entry.finishTime <= expiry;
      await this.#delete(limited, limits, { reason: 'age', end: expiry, isDue, isEnough: () => false });
    }
    if (maxTotalSize === undefined) return this.#forget(name);
    const { index } = this.#options;
    const limit = byteCount(maxTotalSize);
    const before = await index.total(limited, limited.keeper);
    let left = before;
    const isEnough = (): boolean => left <= limit;
    const isDue = ({ entry }: Recorded): boolean => {
      if (isEnough() || !entry.isLocal) return false;
      left -= bytesOf(entry);
      return true;
    };
    await this.#delete(limited, limits, { reason: 'space', isDue, isEnough });
    const bytes = await index.total(limited, limited.keeper);
    this.#kept.set(name, { ...limited, bytes, limit });
    this.#warn(name, limited.keeper !== 'file', deleteAfter !== undefined, before, bytes, limit);
  }

  /** Deletes files that are due, oldest first. One look passes a limited number of others, and the next goes on there. */
  async #delete(limited: Limited, limits: Limits, deletion: Deletion): Promise<void> {
    const { index, recordings } = this.#options;
    const { reason, end, isDue, isEnough } = deletion;
    const place = `${reason} ${limited.keeper} ${limited.vhost}/${limited.app}`;
    let cursor = this.#places.get(place);
    let kept = 0;
    while (!isEnough() && !this.#stop.signal.aborted) {
      const page = await index.page(limited, { limit: PAGE, cursor, end });
      ({ cursor } = page);
      const due = page.recorded.filter(
        (recorded) => keeperOf(recorded.entry) === limited.keeper && isDelivered(recorded, limits) && isDue(recorded),
      );
      if (due.length > 0) await recordings.removeAll(limited, due, reason, limits.force === true);
      kept += page.recorded.length - due.length;
      if (cursor === undefined || kept >= MAX_KEPT) break;
    }
    if (cursor === undefined || kept < MAX_KEPT) this.#places.delete(place);
    else this.#places.set(place, cursor);
  }

  #warn(application: string, isDumped: boolean, hasAge: boolean, before: number, bytes: number, limit: number): void {
    const isFull = bytes > limit;
    if (isFull || (hasAge && before > limit * SHORT)) {
      if (this.#short.has(application)) return;
      this.#short.add(application);
      this.#options.log.warn(
        { event: 'record.space-short', application, bytes, limit },
        isFull
          ? isDumped
            ? 'finished HLS dumps take more than MaxTotalSize: they cannot be deleted'
            : 'finished recordings take more than MaxTotalSize: they are not delivered yet, or cannot be deleted'
          : isDumped
            ? 'finished HLS dumps take almost MaxTotalSize: the oldest are soon deleted before DeleteAfter'
            : 'finished recordings take almost MaxTotalSize: the oldest are soon deleted before DeleteAfter',
      );
    } else if (bytes < limit * RELAXED) this.#short.delete(application);
  }

  #forget(name: string): void {
    this.#kept.delete(name);
    this.#short.delete(name);
  }
}

/** Whether nothing waits for a file's upload. */
function isDelivered({ entry: { upload } }: Recorded, { record, force }: Limits): boolean {
  return force === true || record?.upload === undefined || upload === undefined || upload.state === 'uploaded';
}
