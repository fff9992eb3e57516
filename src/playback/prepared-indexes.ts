import type { Logger } from '../log/log.ts';
import type { Added, Recordings } from '../recording/finished/recordings.ts';
import type { FileReads } from './file-reads.ts';
import { hasParts } from './recorded-files.ts';

/** Files that wait for their index: of others it is made when they are played. */
const MAX_WAITING = 1000;

export interface PreparedIndexesOptions {
  readonly recordings: Pick<Recordings, 'onAdded'>;
  readonly reads: Pick<FileReads, 'prepare'>;
  /** Whether recordings of an application are played. */
  readonly isPlayed: (vhost: string, app: string) => boolean;
  readonly log: Logger;
}

/** Has the indexes of MPEG-TS recordings made when these are finished, one at a time, so that their first viewers need not wait. */
export class PreparedIndexes {
  readonly #options: PreparedIndexesOptions;
  readonly #waiting: Added[] = [];
  readonly #stop = new AbortController();
  readonly #leave: () => void;
  #working: Promise<void> | undefined;

  constructor(options: PreparedIndexesOptions) {
    this.#options = options;
    this.#leave = options.recordings.onAdded((added) => this.#add(added));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#leave();
    this.#waiting.length = 0;
    this.#stop.abort();
    await this.#working;
  }

  #add(added: Added): void {
    if (!hasParts(added) || !this.#options.isPlayed(added.vhost, added.app) || this.#waiting.length >= MAX_WAITING)
      return;
    this.#waiting.push(added);
    this.#working ??= this.#work().finally(() => (this.#working = undefined));
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    const { reads, log } = this.#options;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { id, ...names } = next;
      try {
        await reads.prepare(names, id, this.#stop.signal);
      } catch (error) {
        // those who play it get an answer, and the log a warning
        log.debug({ id, reason: (error as Error).message }, 'the index of a recording was not made yet');
      }
    }
  }
}
