import { Limiter } from '../../lib/limiter.ts';
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

/**
 * Limits how many media files are examined at a time; others wait in order. A look that hangs fails but keeps its
 * place until it is over, so no more threads and programs hang than there are places. While all hang, others fail at
 * once.
 */
export class Looks {
  readonly #options: LooksOptions;
  readonly #places: Limiter;
  #hanging = 0;

  constructor(options: LooksOptions) {
    this.#options = options;
    this.#places = new Limiter(options.atOnce, options.waiting ?? MAX_WAITING);
  }

  /**
   * @param look its signal aborts when its result would come too late
   * @throws MediaError when it hangs or is rejected; errors of `look`
   */
  async take<T>(look: (late: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#hangs) throw new MediaError(HANGS);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const full = (): Error => new MediaBusyError('too many media files wait to be looked at');
    this.#places.run(() => this.#watch(look, reject), full).then(resolve, reject);
    return promise;
  }

  get #hangs(): boolean {
    return this.#hanging >= this.#options.atOnce;
  }

  /** @param onHang called when the look takes too long; its place is free only when it is over */
  async #watch<T>(look: (late: AbortSignal) => Promise<T>, onHang: (error: MediaError) => void): Promise<T> {
    const late = new AbortController();
    const watch = new Watchdog(this.#options.withinMs, () => {
      late.abort();
      this.#hanging++;
      onHang(new MediaError(HANGS));
      if (this.#hangs) this.#places.rejectWaiting(() => new MediaError(HANGS));
    });
    try {
      return await look(late.signal);
    } finally {
      watch.close();
      if (late.signal.aborted) this.#hanging--;
    }
  }
}
