import { Previews } from './previews.js';
import { dateAt, lastTime, stretchesOf, timeAt } from './rewind-times.js';

/** @import Hls from './hls.js' */
/** @import { Stretch } from './rewind-times.js' */

/** Seconds; with less there is nothing to rewind. */
const MIN_SECONDS = 10;
/** Seconds behind the live edge up to which a viewer watches it. */
const AT_THE_EDGE = 3;
/**
 * Seconds from the start of the oldest segment to what is rewound to. Before that start hls.js 1.7 loads the live edge, and nothing
 * is ever shown: the start moves by milliseconds as hls.js learns the times of media, and browsers round times down to microseconds.
 */
const START_MARGIN = 0.1;
/** Fastest rate at which the live edge is caught up with. */
export const CATCH_UP_RATE = 1.1;

/**
 * Where the next player of this page begins: at a date, in milliseconds since the epoch, or at the live edge. Undefined: where
 * the playlist says.
 * @type {{ date: number | undefined } | undefined}
 */
let beginning;

/**
 * Lets the next player begin at a date, or at the live edge.
 * @param {number} [date] milliseconds since the epoch
 */
export const beginAt = (date) => {
  beginning = { date };
};

/**
 * Media that can be rewound to.
 * @typedef {object} Rewindable
 * @property {readonly Stretch[]} stretches
 * @property {number} begin media time of the first that will be there for a while
 * @property {number} live media time of the live edge, or of the end
 * @property {boolean} hasEnded
 */

/** Moves a viewer in what a stream has behind its live edge, and knows whether the viewer watches that edge. */
export class Rewinder {
  previews;
  #hls;
  #video;
  #rewinds;
  #followsEdge = true;
  #hasPlayed = false;
  #closing = new AbortController();
  /** Details of the playlist whose stretches are known. @type {{ of: unknown, stretches: Stretch[] }} */
  #known = { of: undefined, stretches: [] };

  /**
   * @param {Hls} hls
   * @param {HTMLVideoElement} video
   * @param {() => boolean | undefined} rewinds whether viewers can rewind; undefined: where there is a playlist of previews
   */
  constructor(hls, video, rewinds) {
    this.#hls = hls;
    this.#video = video;
    this.#rewinds = rewinds;
    this.previews = new Previews(hls);
    const { signal } = this.#closing;
    video.addEventListener('loadedmetadata', () => this.#begin(), { signal, once: true });
    video.addEventListener('playing', () => (this.#hasPlayed = true), { signal, once: true });
    video.addEventListener('seeking', () => this.#hasPlayed && this.#follow(this.#isAtEdge), { signal });
    hls.on(/** @type {typeof Hls} */ (hls.constructor).Events.LEVEL_UPDATED, () => this.#stayInside());
    // browsers pause what cannot be seen
    video.addEventListener('pause', () => this.#hasPlayed && !document.hidden && this.#follow(false), { signal });
  }

  /** @param {number | null} offset seconds of the playlist's EXT-X-START */
  set start(offset) {
    this.#followsEdge = beginning === undefined ? offset === null : beginning.date === undefined;
  }

  /** Media that can be rewound to; undefined while there is too little. @returns {Rewindable | undefined} */
  get rewindable() {
    const details = this.#hls.latestLevelDetails;
    if (details === null || this.#video.readyState === 0 || !(this.#rewinds() ?? this.#hls.iframeVariants.length > 0))
      return undefined;
    const { fragments, fragmentHint, live: isLive, startSN, targetduration } = details;
    if (this.#known.of !== details) {
      const segments = fragmentHint === undefined ? fragments : [...fragments, fragmentHint];
      this.#known = { of: details, stretches: stretchesOf(segments) };
    }
    const { stretches } = this.#known;
    const first = stretches.find(({ gap }) => !gap);
    if (first === undefined) return undefined;
    const live = isLive ? this.#hls.liveSyncPosition : lastTime(stretches);
    // the oldest segment leaves next, if one has left
    const margin = startSN > 0 ? targetduration : START_MARGIN;
    const begin = first.start + (isLive ? margin : 0);
    if (live === null || live - begin < MIN_SECONDS) return undefined;
    return { stretches, begin, live, hasEnded: !isLive };
  }

  /** Whether the viewer watches the live edge, and is brought there again after a stall. */
  get followsEdge() {
    return this.#followsEdge;
  }

  /** Notes whether a viewer who has rewound has come to the live edge. Call it once a second while the video plays. */
  tick() {
    if (this.rewindable?.hasEnded) this.#follow(false);
    else if (!this.#followsEdge && this.#hasPlayed && this.#isAtEdge) this.#follow(true);
  }

  /** @param {number} time media time, in seconds */
  seek(time) {
    const there = this.rewindable;
    if (there === undefined) return;
    if (there.live - time < AT_THE_EDGE) return this.goLive();
    this.#follow(false);
    this.#video.currentTime = Math.max(time, there.begin);
  }

  /** Plays at the live edge. */
  goLive() {
    const there = this.rewindable;
    if (there === undefined) return;
    this.#follow(true);
    this.#video.currentTime = there.live;
    // the panel shows a button where the browser does not let it
    void this.#video.play().catch(() => undefined);
  }

  /** Leaves the place of the viewer to the next player. */
  close() {
    this.#closing.abort();
    const there = this.rewindable;
    if (!this.#hasPlayed || there === undefined) return;
    beginAt(this.#followsEdge ? undefined : dateAt(there.stretches, this.#video.currentTime));
  }

  get #isAtEdge() {
    const there = this.rewindable;
    return there === undefined || there.live - this.#video.currentTime < AT_THE_EDGE;
  }

  /** @param {boolean} follows */
  #follow(follows) {
    this.#followsEdge = follows || this.rewindable === undefined;
    this.#hls.config.maxLiveSyncPlaybackRate = this.#followsEdge ? CATCH_UP_RATE : 1;
    const { playbackRate } = this.#video;
    if (!this.#followsEdge && playbackRate > 1 && playbackRate <= CATCH_UP_RATE) this.#video.playbackRate = 1;
  }

  /** Seeks again where the oldest segment begins later than was known, or has left since. */
  #stayInside() {
    const there = this.rewindable;
    if (this.#followsEdge || !this.#video.seeking || there === undefined || there.hasEnded) return;
    const [{ start }] = /** @type {[Stretch]} */ (there.stretches);
    if (this.#video.currentTime < start) this.#video.currentTime = there.begin;
  }

  #begin() {
    const there = this.rewindable;
    const date = beginning?.date;
    if (date === undefined) return;
    const isThere = there !== undefined && date >= dateAt(there.stretches, there.begin);
    if (isThere) this.#video.currentTime = Math.min(timeAt(there.stretches, date), there.live);
    this.#follow(!isThere);
  }
}
