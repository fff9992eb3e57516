import { Watchdog } from '../../lib/watchdog.ts';
import { MediaBusyError, MediaError } from './media-error.ts';

const MAX_WAITING = 1000;
const HANGS = 'the disk or mount of the media files does not answer';

export interface LooksOptions {
  readonly atOnce: number;
  /** Time limit of a look, after which it counts as hanging. */
  readonly withinMs: number;
  /** Most looks that may wait. */
  readonly waiting?: number;
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: MediaError) => void;
}

/**
 * Limits how many media files are examined at a time; others wait in order. A look that hangs fails but keeps its
 * place until it is over, so no more threads and programs hang than there are places. While all hang, others fail at
 * once.
 */
export class Looks {
  readonly #options: LooksOptions;
  readonly #waiting: Waiting[] = [];
  #free: number;
  #hanging = 0;

  constructor(options: LooksOptions) {
    this.#options = options;
    this.#free = options.atOnce;
  }

  /**
   * @param look its signal aborts when its result would come too late
   * @throws MediaError when it hangs or is rejected; errors of `look`
   */
  async take<T>(look: (late: AbortSignal) => Promise<T>): Promise<T> {
    await this.#place();
    const late = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const watch = new Watchdog(this.#options.withinMs, () => {
      late.abort();
      this.#hanging++;
      reject(new MediaError(HANGS));
      if (this.#hangs) for (const { refuse } of this.#waiting.splice(0)) refuse(new MediaError(HANGS));
    });
    const over = (): void => {
      watch.close();
      if (late.signal.aborted) this.#hanging--;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next.begin();
    };
    void look(late.signal).then(resolve, reject).finally(over);
    return promise;
  }

  get #hangs(): boolean {
    return this.#hanging >= this.#options.atOnce;
  }

  async #place(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    if (this.#hangs) throw new MediaError(HANGS);
    if (this.#waiting.length >= (this.#options.waiting ?? MAX_WAITING))
      throw new MediaBusyError('too many media files wait to be looked at');
    await new Promise<void>((begin, refuse) => this.#waiting.push({ begin, refuse }));
  }
}
