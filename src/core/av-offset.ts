/** By how much audio is late against video, in milliseconds; negative where it is early. */
export interface AvOffsetFigures {
  /** In the last window; undefined where that lacked audio or video, and while nothing arrives. */
  readonly latest: number | undefined;
  /** Mean of all windows. */
  readonly average: number;
  /** The value that was furthest from 0. */
  readonly worst: number;
}

/** Packets of a window are judged together, by the one that was delayed the least. */
const WINDOW_MS = 2000;

/**
 * Measures by how much later the timestamps of audio are than those of the video that arrives with it: viewers then hear it so much
 * later. Faults within the media cannot be seen. Of several audio tracks the one that is furthest off counts; of several video tracks, the one that
 * came first.
 */
export class AvOffset {
  /** Arrival less media time of the least delayed packet in the window, in milliseconds, by track. */
  readonly #videos = new Map<number, number>();
  readonly #audios = new Map<number, number>();
  #endsAt: number | undefined;
  #windows = 0;
  #sum = 0;
  #latest: number | undefined;
  #worst = 0;

  /** @param now as of `note` @returns undefined before the first window with audio and video */
  figures(now: number): AvOffsetFigures | undefined {
    if (this.#windows === 0) return undefined;
    const isSilent = this.#endsAt !== undefined && now > this.#endsAt + WINDOW_MS;
    const latest = isSilent ? undefined : this.#latest;
    return { latest, average: this.#sum / this.#windows, worst: this.#worst };
  }

  /**
   * Records the arrival of a packet.
   * @param offset arrival less media time, in milliseconds
   * @param now milliseconds
   */
  note(type: 'audio' | 'video', trackId: number, offset: number, now: number): void {
    this.#endsAt ??= now + WINDOW_MS;
    if (now >= this.#endsAt) {
      this.#close();
      this.#endsAt = now + WINDOW_MS;
    }
    const tracks = type === 'video' ? this.#videos : this.#audios;
    const least = tracks.get(trackId);
    if (least === undefined || offset < least) tracks.set(trackId, offset);
  }

  /** The timestamps have jumped: the window begins anew. */
  restart(): void {
    this.#videos.clear();
    this.#audios.clear();
    this.#endsAt = undefined;
    this.#latest = undefined;
  }

  #close(): void {
    const [video] = this.#videos.values();
    if (video !== undefined && this.#audios.size > 0) {
      const offset = furthest([...this.#audios.values()].map((audio) => video - audio));
      this.#latest = offset;
      this.#worst = furthest([this.#worst, offset]);
      this.#sum += offset;
      this.#windows++;
    } else {
      this.#latest = undefined;
    }
    this.#videos.clear();
    this.#audios.clear();
  }
}

function furthest(offsets: readonly number[]): number {
  return offsets.reduce((most, offset) => (Math.abs(offset) > Math.abs(most) ? offset : most), 0);
}
