import { ChangingFile } from '../config/changing-file.ts';
import type { Logger } from '../log/log.ts';
import { readEventFile, type RepeatedEvent } from './event-file.ts';

const LOOK_MS = 2000;
const MAX_BYTES = 1024 * 1024;

/** The events of one file, read again when it changes. One that is broken leaves what there was. */
export class FollowedFile {
  readonly #path: string;
  readonly #file: ChangingFile;
  readonly #log: Logger;
  readonly #onChange: (events: readonly RepeatedEvent[]) => void;
  readonly #timer: NodeJS.Timeout;
  #problem: string | undefined;
  #looking = false;
  #closed = false;

  /** @param onChange called with the events that are enabled, when they are known and with every change */
  constructor(path: string, log: Logger, onChange: (events: readonly RepeatedEvent[]) => void) {
    this.#path = path;
    this.#file = new ChangingFile(path, MAX_BYTES);
    this.#log = log.child({ file: path });
    this.#onChange = onChange;
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref();
    void this.#look();
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const bytes = await this.#file.changed();
      if (bytes !== undefined) this.#take(bytes);
    } catch (error) {
      this.#fail((error as Error).message);
    } finally {
      this.#looking = false;
    }
  }

  #take(bytes: Buffer): void {
    if (this.#closed) return;
    const events = readEventFile(new TextDecoder('utf-8', { fatal: true }).decode(bytes), this.#path);
    this.#problem = undefined;
    this.#log.info({ events: events.length }, 'the file of EventGenerator was read');
    this.#onChange(events);
  }

  #fail(reason: string): void {
    if (this.#closed || reason === this.#problem) return;
    this.#problem = reason;
    this.#log.warn(`the file of EventGenerator cannot be used, what was read before stays in effect: ${reason}`);
  }
}
