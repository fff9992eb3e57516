/** @import Hls, { HlsIFramesOnly } from './hls.js' */

/** How long the playlist of previews is loaded on, after the viewer has looked at one. */
const REST_MS = 20_000;

/** Previews of other moments of a stream, of its playlist of I-frames. */
export class Previews {
  #hls;
  /** null after it has failed. @type {HlsIFramesOnly | null | undefined} */
  #player;
  /** Media time of the preview that was asked for last. */
  #wanted = 0;
  /** @type {number | undefined} */
  #resting;

  /** @param {Hls} hls that plays the stream */
  constructor(hls) {
    this.#hls = hls;
  }

  /** Whether the stream has previews. */
  get areThere() {
    return this.#player !== null && this.#hls.iframeVariants.length > 0;
  }

  /**
   * Shows the preview of a moment, when it is loaded.
   * @param {HTMLVideoElement} video always the same one
   * @param {number} time media time of the stream, in seconds
   */
  show(video, time) {
    clearTimeout(this.#resting);
    this.#wanted = time;
    if (this.#player === undefined) this.#open(video);
    this.#player?.loadMediaAt(time);
  }

  /** Ends loading, unless another preview is shown soon. */
  rest() {
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => {
      this.#player?.destroy();
      this.#player = undefined;
    }, REST_MS);
  }

  /** @param {HTMLVideoElement} video */
  #open(video) {
    const player = this.#hls.createIFramePlayer({ lowLatencyMode: false });
    this.#player = player;
    if (player === null) return;
    const { ERROR, MEDIA_ATTACHED } = /** @type {typeof Hls} */ (this.#hls.constructor).Events;
    // it forgets what it is asked for before
    player.once(MEDIA_ATTACHED, () => player.loadMediaAt(this.#wanted));
    player.on(ERROR, (_event, { fatal }) => {
      if (!fatal) return;
      player.destroy();
      this.#player = null;
    });
    player.attachMedia(video);
  }
}
