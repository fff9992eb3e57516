import type { InputStream } from '../core/stream.ts';
import type { VideoTrack } from '../core/track.ts';
import type { VideoEncoding } from './encoding.ts';
import { isSameRate } from './picture.ts';

const EVERY_MS = 5000;
/** A rate that is higher by less than this part is the same one, measured. */
const TOLERANCE = 0.2;

/** Follows the frame rates that the video tracks of an input really have. */
export class RateWatch {
  readonly #input: InputStream;
  readonly #timer: NodeJS.Timeout;
  /** Frames per second of each track, when it was last looked. */
  #before = new Map<number, number>();

  /** @param look called every few seconds, with what tells how many frames a second a track has had since, at least */
  constructor(input: InputStream, look: (rateOf: (track: VideoTrack) => number) => void) {
    this.#input = input;
    this.#timer = setInterval(() => {
      const now = new Map(input.tracks.map(({ id }) => [id, this.#measured(id)]));
      const before = this.#before;
      this.#before = now;
      look(({ id }) => Math.min(before.get(id) ?? 0, now.get(id) ?? 0));
    }, EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #measured(id: number): number {
    return this.#input.measured(id)?.framerateLatest ?? 0;
  }
}

/**
 * An encoding for a source that has more frames a second than it told: shared out among fewer, the bitrate would be
 * too high by as much. One that has fewer stays below its bitrate, and may have more again at any time. The same object
 * where there is nothing to change.
 * @param measured frames per second of the source
 */
export function raisedRate(from: VideoTrack, encoding: VideoEncoding, measured: number): VideoEncoding {
  const { framerate, skipFrames, expectedFramerate } = encoding;
  // where frames are chosen by time, no more come out than are configured
  if (skipFrames === undefined && framerate > 0 && !isSameRate(framerate, from.framerate)) return encoding;
  const rate = measured / ((skipFrames ?? 0) + 1);
  if (rate <= expectedFramerate * (1 + TOLERANCE)) return encoding;
  return { ...encoding, expectedFramerate: Math.round(rate * 100) / 100 };
}
