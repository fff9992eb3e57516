import { createHash } from 'node:crypto';
import Type from 'typebox';
import { JsonFolder } from '../../../lib/files/json-folder.ts';
import { within } from '../../../lib/within.ts';
import type { Logger } from '../../../log/log.ts';
import type { StreamNames } from './stream-folder.ts';
import { sweepRuns, type SweptPlace } from './sweep-runs.ts';

export interface SweepsOptions {
  readonly kind: string;
  /** Folder of this node alone, in which places outlive this process. Absent: none do. */
  readonly folder: string | undefined;
  /** Runs that are packaged here: by the folders of the streams of an application. */
  readonly openRuns: (application: Pick<StreamNames, 'vhost' | 'app'>) => ReadonlyMap<string, string>;
  readonly log: Logger;
}

const Place = Type.Object({
  root: Type.String(),
  vhost: Type.String(),
  app: Type.String(),
  kind: Type.String(),
  olderThanMs: Type.Number({ minimum: 0 }),
});

/** Time between two looks, and least age beyond MaxDuration of what is removed. */
const SWEEP_MS = 600_000;
/** Longest wait of a stop for the disks. */
const STOP_MS = 2000;
const DOCUMENTS = 'documents';

/**
 * Removes, now and from time to time, what streams have left on disks and no player can go back to any more. Places are remembered
 * until nothing is left there: their application may be deleted, or go on without DVR.
 */
export class Sweeps {
  readonly #options: SweepsOptions;
  readonly #documents: JsonFolder<typeof Place> | undefined;
  /** By the names of their documents. */
  readonly #places = new Map<string, SweptPlace>();
  /** Places whose settings this process knows. */
  readonly #used = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #isClosed = false;
  /** Looks below each root, one after the other, and changes of the documents. None rejects. */
  readonly #looks = new Map<string, Promise<void>>();
  /** Places that are to be looked at. */
  readonly #due = new Set<string>();

  constructor(options: SweepsOptions) {
    const { folder } = options;
    this.#options = options;
    this.#documents = folder === undefined ? undefined : new JsonFolder(folder, Place);
    this.#timer = setInterval(() => this.#look([...this.#places.keys()]), SWEEP_MS).unref();
    this.#looks.set(DOCUMENTS, this.#load());
  }

  /** A stream keeps segments below a folder. @param maxMs time that its players can go back, in milliseconds */
  use(root: string, { vhost, app }: StreamNames, maxMs: number): void {
    const { kind } = this.#options;
    const name = createHash('sha256').update([root, vhost, app, kind].join('\0')).digest('hex').slice(0, 32);
    const before = this.#used.has(name) ? this.#places.get(name) : undefined;
    const olderThanMs = Math.max(before?.olderThanMs ?? 0, maxMs + SWEEP_MS);
    if (before?.olderThanMs === olderThanMs) return;
    const place = { root, vhost, app, kind, olderThanMs };
    this.#used.add(name);
    this.#places.set(name, place);
    this.#do(DOCUMENTS, async () => await this.#documents?.put(name, place));
    this.#look([name]);
  }

  /** Idempotent. Resolves when no look is under way, or after a while: the next start looks again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#looks.get(DOCUMENTS);
    await within(STOP_MS, Promise.all(this.#looks.values()));
  }

  async #load(): Promise<void> {
    const names = (await this.#documents?.names().catch((error: unknown) => this.#warn(error))) ?? [];
    for (const name of names) {
      const place = await this.#documents?.read(name).catch((error: unknown) => this.#warn(error));
      if (place?.kind === this.#options.kind && !this.#used.has(name)) this.#places.set(name, place);
    }
    this.#look([...this.#places.keys()]);
  }

  #look(names: readonly string[]): void {
    for (const name of names) {
      const root = this.#places.get(name)?.root;
      // on a disk that hangs they would add up
      if (root === undefined || this.#due.has(name)) continue;
      this.#due.add(name);
      this.#do(root, async () => {
        this.#due.delete(name);
        await this.#sweep(name);
      });
    }
  }

  async #sweep(name: string): Promise<void> {
    const place = this.#places.get(name);
    if (place === undefined) return;
    const open = () => this.#options.openRuns(place);
    const isEmpty = await sweepRuns(place, (stream) => open().get(stream));
    if (!isEmpty || open().size > 0 || this.#places.get(name) !== place) return;
    this.#places.delete(name);
    this.#used.delete(name);
    this.#do(DOCUMENTS, async () => {
      if (!this.#places.has(name)) await this.#documents?.remove(name);
    });
  }

  /** @param of a root, each of which has one call at a time, or the documents */
  #do(of: string, step: () => Promise<void>): void {
    const before = this.#looks.get(of) ?? Promise.resolve();
    this.#looks.set(
      of,
      before.then(() => (this.#isClosed ? undefined : step())).catch((error: unknown) => this.#warn(error)),
    );
  }

  #warn(error: unknown): void {
    this.#options.log.warn({ err: error }, 'old segments of DVR could not be removed');
  }
}
