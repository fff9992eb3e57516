import type { types } from 'mediasoup';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';

/** Producer that viewers consume: of one track or of the layers of one video, on one worker, for one agreed codec. */
export interface ViewerOutlet {
  readonly producer: types.Producer;
  readonly worker: MediaWorker;
  /** Tracks that can be sent. For video, the layers as consumers number them: lowest first. */
  readonly tracks: readonly MediaTrack[];
  /** Goes on with another track; only for audio of a single viewer. */
  readonly select?: (track: AudioTrack) => void;
  /** Calls once, before the next key frame is sent; only where the worker does not wait for one. */
  readonly beforeKey?: ((act: () => void) => void) | undefined;
  readonly release: () => void;
}
