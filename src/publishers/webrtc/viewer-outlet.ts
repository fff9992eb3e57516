import type { types } from 'mediasoup';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';

/** A producer that viewers consume: of one track or of the layers of one picture, on one worker, for one agreed codec. */
export interface ViewerOutlet {
  readonly producer: types.Producer;
  readonly worker: MediaWorker;
  /** What can be sent. Of video, the layers as consumers number them: lowest first. */
  readonly tracks: readonly MediaTrack[];
  /** Of sound that is one viewer's own: goes on with another of the tracks. */
  readonly select?: (track: AudioTrack) => void;
  /** Gives up one use. */
  readonly release: () => void;
}
