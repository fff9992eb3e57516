import { keyFrameSeconds } from '../core/meter.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { IngressSample } from './ingress-rules.ts';

/** Minimum time for a rate. */
const SHORTEST_SECONDS = 0.5;

/** Measures an input stream by the clock of this machine: timestamps do not show that a publisher has stopped sending. */
export class IngressMeter {
  readonly #input: InputStream;
  /** Milliseconds, and frames by track at that time. */
  #before: { readonly at: number; readonly bytes: number; readonly frames: ReadonlyMap<number, number> };

  /** @param at milliseconds of the monotonic clock */
  constructor(input: InputStream, at: number) {
    this.#input = input;
    this.#before = this.#read(at);
  }

  /** Rates since the call before; undefined when that was just now. */
  sample(at: number): IngressSample | undefined {
    const before = this.#before;
    const seconds = (at - before.at) / 1000;
    if (seconds < SHORTEST_SECONDS) return undefined;
    const now = this.#read(at);
    this.#before = now;
    const { tracks } = this.#input;
    return {
      bitrate: Math.round((Math.max(0, now.bytes - before.bytes) * 8) / seconds),
      videos: tracks.flatMap((track) => {
        const measured = this.#input.measured(track.id);
        if (track.type !== 'video' || measured === undefined) return [];
        // a track that has just begun, or begun anew, has no rate yet
        const framerate = Math.max(0, measured.frames - (before.frames.get(track.id) ?? 0)) / seconds;
        const keyFrameInterval = keyFrameSeconds(measured);
        const { width, height } = track;
        return [{ width, height, framerate, keyFrameInterval, hasBframes: measured.hasBframes }];
      }),
      avOffset: this.#input.arrival.avOffset()?.latest,
      audios: tracks.flatMap((track) => (track.type === 'audio' ? [{ samplerate: track.samplerate }] : [])),
    };
  }

  #read(at: number) {
    const { tracks } = this.#input;
    const frames = new Map(tracks.map(({ id }) => [id, this.#input.measured(id)?.frames ?? 0]));
    const bytes = tracks.reduce((sum, { id }) => sum + (this.#input.measured(id)?.bytes ?? 0), 0);
    return { at, bytes, frames };
  }
}
