import type { types } from 'mediasoup';
import type { InputStream } from '../core/input-stream.ts';
import type { MediaWorker } from './media-worker.ts';

/** Producer of one track, with the publisher's RTP. */
export interface LiveProducer {
  readonly worker: MediaWorker;
  readonly producer: types.Producer;
  /** Index of the track in the producer's encodings. */
  readonly encoding: number;
}

/** Producers of streams published over WebRTC, whose RTP workers can forward to viewers unchanged. */
export class LiveProducers {
  readonly #of = new WeakMap<InputStream, Map<number, LiveProducer>>();

  /** @param trackId in the input stream */
  set(input: InputStream, trackId: number, producer: LiveProducer): void {
    const known = this.#of.get(input);
    if (known === undefined) this.#of.set(input, new Map([[trackId, producer]]));
    else known.set(trackId, producer);
  }

  /** @returns undefined for a track that was not published over WebRTC */
  get(input: InputStream, trackId: number): LiveProducer | undefined {
    return this.#of.get(input)?.get(trackId);
  }
}
