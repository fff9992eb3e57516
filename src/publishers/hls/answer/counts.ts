import { Histogram } from '../../../lib/histogram.ts';

/** What players ask for. */
export type FileKind = 'master' | 'chunklist' | 'part' | 'segment' | 'init' | 'other';

/** Upper bounds, in seconds. Up to a frame is what it takes until the next one has arrived. */
const PART_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** What one kind of HLS has answered, and when its parts were there. */
export class PlaylistCounts {
  readonly #requests = new Map<FileKind, Map<number, number>>();
  /** Seconds from when the media at a part's end had arrived until players could have the part. */
  readonly partDelay = new Histogram(PART_SECONDS);

  /** Requests by kind and status. */
  get requests(): ReadonlyMap<FileKind, ReadonlyMap<number, number>> {
    return this.#requests;
  }

  answered(kind: FileKind, status: number): void {
    const statuses = this.#requests.get(kind) ?? new Map<number, number>();
    this.#requests.set(kind, statuses);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
}
