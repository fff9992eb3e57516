import type { InputStream } from '../core/input-stream.ts';
import type { VideoTrack } from '../core/track.ts';
import type { VideoEncoding } from './encoding.ts';
import { isSameRate } from './frame-parameters.ts';

const EVERY_MS = 5000;
/** Share by which the measured rate may exceed the expected one. */
const TOLERANCE = 0.2;

/** Measures the actual frame rates of an input's video tracks. */
export class RateWatch {
  readonly #input: InputStream;
  readonly #timer: NodeJS.Timeout;
  /** Frames per second, by track id, at the last measurement. */
  #before = new Map<number, number>();

  /** @param look called every few seconds, with a function that returns the lower of a track's last two measured rates */
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
 * Adapts an encoding to a source with more frames per second than declared, for which the bitrate would be too high. A
 * source with fewer stays below its bitrate, and may get faster at any time. Returns the same object if nothing changes.
 * @param measured frames per second of the source
 */
export function raisedRate(from: VideoTrack, encoding: VideoEncoding, measured: number): VideoEncoding {
  const { framerate, skipFrames, expectedFramerate } = encoding;
  // selected by time, frames never exceed the configured rate
  if (skipFrames === undefined && framerate > 0 && !isSameRate(framerate, from.framerate)) return encoding;
  const rate = measured / ((skipFrames ?? 0) + 1);
  if (rate <= expectedFramerate * (1 + TOLERANCE)) return encoding;
  return { ...encoding, expectedFramerate: Math.round(rate * 100) / 100 };
}
