import type { Continuity } from '../../core/continuity.ts';
import type { Announced } from '../intake/start-gate.ts';
import { MAX_TRACKS, type MediaKind } from '../intake/track-id.ts';

const KEY = 'rtmpTracks';

/**
 * Tracks of a stream, kept for the one that continues it: a publisher that announces none is expected to have these again, and no
 * other is waited for.
 */
export class FormerTracks {
  /** Tracks of the previous stream; undefined where there was none. */
  readonly announced: Announced | undefined;
  readonly #continuity: Continuity;
  readonly #known: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };

  constructor(continuity: Continuity) {
    this.#continuity = continuity;
    this.announced = read(continuity.inherited(KEY));
  }

  /** The stream, which is live, has a track. @param trackId as the source numbers those of a kind */
  known(kind: MediaKind, trackId: number): void {
    if (this.#known[kind].has(trackId)) return;
    this.#known[kind].add(trackId);
    this.#continuity.keep(KEY, { video: [...this.#known.video], audio: [...this.#known.audio] });
  }
}

function read(value: unknown): Announced | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { video, audio } = value as Readonly<Record<string, unknown>>;
  return isIds(video) && isIds(audio) && video.length + audio.length > 0 ? { video, audio } : undefined;
}

function isIds(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length <= MAX_TRACKS && value.every((id) => Number.isInteger(id));
}
