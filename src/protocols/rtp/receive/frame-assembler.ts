import type { Depacketizer, FrameSink } from './depacketizer.ts';
import { RtpError } from './error.ts';
import type { RtpPacket } from './packet.ts';

/** Position of a payload in its frame, as far as the payload shows it. */
export type Place = 'first' | 'later' | 'skipped';

/** Payload format of a video codec. */
export interface PayloadFormat {
  /** `first` only where a frame surely begins; `skipped` is of no frame. @throws RtpError */
  place(payload: Buffer): Place;
  /** Takes the next payload of a frame. Answers whether it is the last. @throws RtpError */
  add(payload: Buffer): boolean;
  /** A part with an explicit end is not complete. */
  readonly isOpen?: boolean;
  /**
   * The frame of all that was added, undefined when it is not whole. What follows is another one.
   * @param ended it is known that an open part is at its end
   */
  take(ended: boolean): Buffer | undefined;
  /** Forgets what was added. */
  clear(): void;
}

/** Larger frames do not exist. Small payloads, and small units in them, of a large number would take more memory than they tell. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const MAX_FRAME_PACKETS = 16_384;
const LOST = 'packets were lost';

/**
 * Assembles the video frames of an RTP stream. A frame is complete with the packet that has the marker, or that ends it by its
 * format. Where markers are set inside of frames (cameras set them on every slice), or are missing, a frame is complete when
 * the timestamp changes. A frame of which anything is missing is left out.
 */
export class FrameAssembler implements Depacketizer {
  readonly #format: PayloadFormat;
  readonly #sink: FrameSink;
  #timestamp = 0;
  #bytes = 0;
  #packets = 0;
  #state: 'idle' | 'open' | 'damaged' = 'idle';
  /** Packets before the next one may be missing, as at the beginning. */
  #gap = true;
  /** Timestamp of the last frame that ended. */
  #ended: number | undefined;
  #believesMarkers = true;
  /** The last packet has the marker, but leaves a part of the frame open. */
  #markedOpen = false;
  /** Such markers were at the end of frames: this sender does not signal the ends of parts. */
  #leavesOpen = false;

  constructor(format: PayloadFormat, sink: FrameSink) {
    this.#format = format;
    this.#sink = sink;
  }

  push({ payload, timestamp, marker }: RtpPacket): void {
    if (payload.length === 0) return;
    if (this.#state !== 'idle' && timestamp !== this.#timestamp) this.#endBefore(payload);
    if (this.#state === 'damaged') {
      // what did not come was of this frame
      this.#gap = false;
    } else {
      try {
        const place = this.#format.place(payload);
        if (place === 'skipped') return;
        if (this.#state === 'idle') this.#begin(place, timestamp);
        if (this.#state === 'open') this.#add(payload, marker);
      } catch (error) {
        if (!(error instanceof RtpError)) throw error;
        this.#timestamp = timestamp;
        this.#damage(error.message);
      }
    }
    if (marker && this.#state === 'damaged' && this.#believesMarkers) this.#end();
  }

  lose(): void {
    this.#gap = true;
    if (this.#state === 'idle') this.#sink.damaged(LOST);
    else this.#damage(LOST);
  }

  #begin(place: Place, timestamp: number): void {
    const afterGap = this.#gap;
    this.#timestamp = timestamp;
    this.#bytes = 0;
    this.#packets = 0;
    this.#markedOpen = false;
    this.#state = place === 'later' && afterGap ? 'damaged' : 'open';
    this.#gap = false;
    if (place === 'first' || afterGap || timestamp !== this.#ended) return;
    this.#believesMarkers = false;
    this.#damage('a marker without a frame');
  }

  #add(payload: Buffer, marker: boolean): void {
    this.#bytes += payload.length;
    if (++this.#packets > MAX_FRAME_PACKETS || this.#bytes > MAX_FRAME_BYTES)
      throw new RtpError('a frame is too large');
    const isLast = this.#format.add(payload);
    this.#markedOpen = marker && this.#believesMarkers && this.#format.isOpen === true;
    if (isLast || (marker && this.#believesMarkers && (!this.#markedOpen || this.#leavesOpen))) this.#end();
  }

  /** A marker on a fragment that does not end its unit counts when the next payload surely begins another frame. */
  #endBefore(payload: Buffer): void {
    if (this.#state === 'open' && this.#markedOpen && !this.#leavesOpen) this.#leavesOpen = this.#begins(payload);
    this.#end();
  }

  #begins(payload: Buffer): boolean {
    try {
      return this.#format.place(payload) === 'first';
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      return false;
    }
  }

  #end(): void {
    const wasOpen = this.#state === 'open';
    this.#state = 'idle';
    this.#ended = this.#timestamp;
    if (!wasOpen) return;
    const frame = this.#format.take(this.#markedOpen && this.#leavesOpen);
    this.#markedOpen = false;
    if (frame === undefined) this.#sink.damaged('a frame is incomplete');
    else this.#sink.frame(frame, this.#timestamp);
  }

  #damage(reason: string): void {
    this.#format.clear();
    this.#state = 'damaged';
    this.#sink.damaged(reason);
  }
}
