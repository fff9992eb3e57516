import type { types } from 'mediasoup';
import type { MediaTrack } from '../../core/track.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import type { ViewerOutlet } from './viewer-outlet.ts';

/** Time for which an outlet without viewers is kept, for players that reload. */
const LINGER_MS = 3000;

/** Source of an outlet, which the outlet closes. */
export interface OutletSource {
  readonly producer: types.Producer;
  readonly beforeKey?: ViewerOutlet['beforeKey'];
  close(): void;
}

/** One producer for any number of viewers. Ends with its source, and a while after its last viewer has left. */
export class SharedOutlet {
  readonly tracks: readonly MediaTrack[];
  readonly worker: MediaWorker;
  readonly #source: Promise<OutletSource>;
  readonly #onClose: () => void;
  #users = 0;
  #linger: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param source closed by the outlet */
  constructor(tracks: readonly MediaTrack[], worker: MediaWorker, source: Promise<OutletSource>, onClose: () => void) {
    this.tracks = tracks;
    this.worker = worker;
    this.#source = source;
    this.#onClose = onClose;
    source.then(
      ({ producer }) => {
        if (this.#closed) return;
        if (producer.closed) this.close();
        else producer.observer.once('close', () => this.close());
      },
      () => this.close(),
    );
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Counts one more viewer, until it releases its use. @throws the error that kept the source from being made */
  async use(): Promise<ViewerOutlet> {
    const { tracks, worker } = this;
    this.#users++;
    clearTimeout(this.#linger);
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      this.#users--;
      if (this.#users === 0 && !this.#closed) this.#linger = setTimeout(() => this.close(), LINGER_MS);
    };
    try {
      const { producer, beforeKey } = await this.#source;
      return { producer, worker, tracks, beforeKey, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#linger);
    // callers that wait for the source get the reason
    this.#source.then(
      (made) => made.close(),
      () => undefined,
    );
    this.#onClose();
  }
}
