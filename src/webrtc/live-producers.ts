import type { types } from 'mediasoup';
import type { InputStream } from '../core/stream.ts';
import type { MediaWorker } from './media-worker.ts';

/** RTP of one track of a stream, as its publisher sends it. */
export interface LiveProducer {
  readonly worker: MediaWorker;
  readonly producer: types.Producer;
  /** Which of the producer's encodings the track is. */
  readonly encoding: number;
}

/** RTP that is on the media workers already: viewers of streams that came over WebRTC can be sent it as it is. */
export class LiveProducers {
  readonly #of = new WeakMap<InputStream, Map<number, LiveProducer>>();

  /** @param trackId in the input stream */
  set(input: InputStream, trackId: number, producer: LiveProducer): void {
    const known = this.#of.get(input);
    if (known === undefined) this.#of.set(input, new Map([[trackId, producer]]));
    else known.set(trackId, producer);
  }

  /** Undefined where a track did not come over WebRTC. */
  get(input: InputStream, trackId: number): LiveProducer | undefined {
    return this.#of.get(input)?.get(trackId);
  }
}
