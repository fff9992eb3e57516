import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { MAX_LAG_SECONDS } from './track-lag.ts';
import { Replacement } from './replacement.ts';
import type { SegmentWriter } from './segment-writer.ts';
import type { TrackFormat } from './track-format.ts';
import type { TrackPosition } from './track-position.ts';

/**
 * Seconds after which bypassed audio, later than usual, has stopped: players near the live edge run out of it. Audio
 * encoded here gets longer, because its encoder may be delayed.
 */
const PAUSE_SECONDS = 0.8;
/** Limit of the usual lateness that is added to the wait. */
const MAX_USUAL_SECONDS = MAX_LAG_SECONDS - PAUSE_SECONDS;
/** Factor by which the usual lateness falls with each packet. */
const DECAY = 0.999;
/** Video frames further apart than this have a pause between them. */
const MAX_APART_SECONDS = 5;
/** Seconds of a frame that replaces missing video. */
const STILL_SECONDS = 0.5;

/** Replaces missing media of one track, so that players continue with the other tracks. Times are media times in seconds. */
export class StandIn {
  readonly #format: TrackFormat;
  readonly #writer: SegmentWriter<unknown>;
  readonly #position: TrackPosition;
  readonly #replacement = new Replacement();
  readonly #wait: number;
  #isActive = false;
  #hasLeft = false;
  /** Usual seconds behind the newest packet of any track. */
  #usual = 0;
  /** Time of the newest packet. */
  #arrivedAt = Infinity;
  /** Longest seconds between video frames that could not follow the replacement. */
  #apart = 0;

  constructor(format: TrackFormat, writer: SegmentWriter<unknown>, position: TrackPosition) {
    this.#format = format;
    this.#writer = writer;
    this.#position = position;
    this.#wait = format.isAudio && format.track.bypass ? PAUSE_SECONDS : MAX_LAG_SECONDS;
  }

  get isActive(): boolean {
    return this.#isActive;
  }

  /** Whether the stream no longer has the track. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Sets whether the stream has the track; otherwise its media is replaced without a wait. */
  stay(isThere: boolean): void {
    if (!isThere && !this.#hasLeft) this.#isActive = true;
    this.#hasLeft = !isThere;
  }

  /** Stops, unless the track has left: the next packet begins anew. */
  finish(): void {
    if (!this.#hasLeft) this.#isActive = false;
  }

  /**
   * Records a packet that arrived.
   * @param newest time of the newest packet of any track
   * @param canFollow whether it can follow its replacement
   */
  note(packet: Packet, time: number, newest: number, canFollow: boolean): void {
    if (canFollow) {
      if (this.#format.isAudio)
        this.#usual = Math.min(MAX_USUAL_SECONDS, Math.max(0, newest - time, this.#usual * DECAY));
      this.#replacement.note(packet);
      this.#isActive = false;
    } else if (time - this.#arrivedAt <= MAX_APART_SECONDS) {
      this.#apart = Math.max(this.#apart, time - this.#arrivedAt);
    }
    this.#arrivedAt = time;
  }

  /** Whether a replacement packet is due. @param newest as of `note` */
  isDue(newest: number): boolean {
    const reached = this.#reached;
    if (reached === undefined || this.#position.awaitsJump) return false;
    const { timebase } = this.#format.track;
    const missing = newest - toSeconds(reached, timebase);
    if (this.#isActive) return missing > this.#ticks / timebase.den + this.#usual;
    return missing > Math.max(this.#wait + this.#usual, 2 * this.#apart);
  }

  /** Makes the next replacement packet. @returns undefined where the track cannot be replaced */
  packet(): Packet | undefined {
    const reached = this.#reached;
    if (reached === undefined) return undefined;
    const packet = this.#replacement.packet(this.#format.track, reached, this.#ticks);
    if (packet !== undefined) this.#isActive = true;
    return packet;
  }

  /** End of the packaged media, in ticks of packets; undefined before the first part. */
  get #reached(): number | undefined {
    const { begun, cut, lastEnd } = this.#writer;
    if (!begun || cut === undefined) return undefined;
    const begin = Math.round(cut.time * this.#format.den);
    if (lastEnd === undefined) return begin;
    return this.#position.isAway ? Math.max(begin, lastEnd) : lastEnd;
  }

  /** Duration of a replacement packet. */
  get #ticks(): number {
    const { isAudio, frameSeconds, den } = this.#format;
    return Math.round((isAudio ? frameSeconds : Math.min(STILL_SECONDS, this.#writer.target)) * den);
  }
}
