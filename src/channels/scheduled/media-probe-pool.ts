import { Limiter } from '../../lib/limiter.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { MediaBusyError, MediaError } from './media-error.ts';

const MAX_WAITING = 1000;
const HANGS = 'the disk or mount of the media files does not answer';

export interface MediaProbePoolOptions {
  readonly atOnce: number;
  /** Time limit of a probe, after which it counts as hanging. */
  readonly withinMs: number;
  /** Most probes that may wait. */
  readonly waiting?: number;
}

/**
 * Limits how many media files are examined at a time; others wait in order. A probe that hangs fails but keeps its
 * place until it is over, so no more threads and programs hang than there are places. While all hang, others fail at
 * once.
 */
export class MediaProbePool {
  readonly #options: MediaProbePoolOptions;
  readonly #places: Limiter;
  #hanging = 0;

  constructor(options: MediaProbePoolOptions) {
    this.#options = options;
    this.#places = new Limiter(options.atOnce, options.waiting ?? MAX_WAITING);
  }

  /**
   * @param probe its signal aborts when its result would come too late
   * @throws MediaError when it hangs or is rejected; errors of `probe`
   */
  async take<T>(probe: (late: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#hangs) throw new MediaError(HANGS);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const full = (): Error => new MediaBusyError('too many media files wait to be looked at');
    this.#places.run(() => this.#watch(probe, reject), full).then(resolve, reject);
    return promise;
  }

  get #hangs(): boolean {
    return this.#hanging >= this.#options.atOnce;
  }

  /** @param onHang called when the probe takes too long; its place is free only when it is over */
  async #watch<T>(probe: (late: AbortSignal) => Promise<T>, onHang: (error: MediaError) => void): Promise<T> {
    const late = new AbortController();
    const watch = new Watchdog(this.#options.withinMs, () => {
      late.abort();
      this.#hanging++;
      onHang(new MediaError(HANGS));
      if (this.#hangs) this.#places.rejectWaiting(() => new MediaError(HANGS));
    });
    try {
      return await probe(late.signal);
    } finally {
      watch.close();
      if (late.signal.aborted) this.#hanging--;
    }
  }
}
