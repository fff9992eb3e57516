import { Histogram } from '../../../lib/histogram.ts';

export type FileKind = 'master' | 'chunklist' | 'part' | 'segment' | 'init' | 'other';

/** Upper bounds, in seconds. A delay of up to a frame's duration is normal: a frame ends when the next one arrives. */
const PART_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** Segments that players may rewind to. */
export class PastCounts {
  storedSegments = 0;
  storedBytes = 0;
  lostSegments = 0;
}

/** Rotations of the keys of encrypted streams. */
export class KeyCounts {
  rotations = 0;
  /** Rotations for which the DRM file could not be used or had no other key, or a key server had not given the next one. */
  failures = 0;
  /** Requests to key servers, and those of them that gave no key. */
  requests = 0;
  requestFailures = 0;
  /** Time of the next rotation of each stream whose keys rotate by a period, in milliseconds since the epoch. */
  readonly next = new Map<object, number>();

  /** Time of the earliest of them; undefined for none. */
  get earliest(): number | undefined {
    return this.next.size === 0 ? undefined : Math.min(...this.next.values());
  }
}

/** Statistics of one kind of HLS: responses, delays of parts, the past, and keys. */
export class PlaylistCounts {
  readonly #requests = new Map<FileKind, Map<number, number>>();
  /** Seconds from the arrival of a part's last media until players could load the part. */
  readonly partDelay = new Histogram(PART_SECONDS);
  readonly past = new PastCounts();
  readonly keys = new KeyCounts();

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
