import { captionData } from '../../codecs/captions/cc-data.ts';
import type { Packet } from '../packet.ts';
import { toSeconds } from '../timebase.ts';

/** Captions of a frame, at the time at which it is shown. */
interface CaptionFrame {
  /** Seconds of media time. */
  readonly at: number;
  /** Constructs of cc_data; empty for none. */
  readonly data: Buffer;
}

const NONE = Buffer.alloc(0);

/** The frame that was looked at last, and what it carries: all that read a stream take a frame one after the other. */
const last: { data: Buffer; found: Buffer | undefined } = { data: NONE, found: undefined };

/** Most frames that wait for those that are shown before them. */
const MAX_WAITING = 64;
/** A step of the decoding time beyond this is a jump of the source's clock. */
const JUMP_SECONDS = 10;
/** Another track is followed when the one that had captions brings none for so long. */
const SILENT_SECONDS = 10;

/** Captions of the first video of a stream that has any, frame by frame in the order in which frames are shown. */
export class CaptionFrames {
  #track: number | undefined;
  #newest = -Infinity;
  /** Decoding time at which the followed track had captions last. */
  #heard = -Infinity;
  /** By the time at which they are shown. */
  #waiting: CaptionFrame[] = [];

  /** Whether a frame carried captions, even empty ones. */
  get carried(): boolean {
    return this.#track !== undefined;
  }

  /** Takes a frame of a video. @returns frames of the followed one that none is shown before any more */
  push({ track, dts, pts, data }: Packet): readonly CaptionFrame[] {
    const isFollowed = track.id === this.#track;
    const decoded = toSeconds(dts, track.timebase);
    if (!isFollowed && this.#track !== undefined && decoded - this.#heard < SILENT_SECONDS) return [];
    const found = captionsIn(track.codec, data);
    if (found === undefined && !isFollowed) return [];
    if (!isFollowed) this.#follow(track.id);
    const isJump = decoded < this.#newest || decoded > this.#newest + JUMP_SECONDS;
    const before = isJump ? this.#waiting.splice(0) : [];
    this.#newest = decoded;
    if (found !== undefined) this.#heard = decoded;
    this.#insert({ at: toSeconds(pts, track.timebase), data: found ?? NONE });
    // every frame that follows is decoded, and so shown, later
    const first = this.#waiting.findIndex(({ at }) => at > decoded);
    const due = first < 0 ? this.#waiting.length : Math.max(first, this.#waiting.length - MAX_WAITING);
    return [...before, ...this.#waiting.splice(0, due)];
  }

  #follow(track: number): void {
    this.#track = track;
    this.#newest = -Infinity;
    this.#waiting = [];
  }

  #insert(frame: CaptionFrame): void {
    const later = this.#waiting.findIndex(({ at }) => at > frame.at);
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, frame);
  }
}

/** Captions as of `captionData`, which searches a frame once however many ask for them. */
function captionsIn(codec: string, data: Buffer): Buffer | undefined {
  if (last.data !== data) Object.assign(last, { data, found: captionData(codec, data) });
  return last.found;
}
