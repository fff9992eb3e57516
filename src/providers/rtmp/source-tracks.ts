import type { Logger } from '../../log/log.ts';
import { UNDECLARED } from '../intake/declared.ts';
import { MAX_TRACKS, streamTrackId, type MediaKind } from '../intake/track-id.ts';
import { AudioSource } from './audio-source.ts';
import { NOTHING_DECLARED, type Declared } from './metadata.ts';
import { VideoSource } from './video-source.ts';

export type TrackSource = VideoSource | AudioSource;

/** Tracks of a source, made as they come and bounded in number. */
export class SourceTracks {
  readonly #log: Logger;
  readonly #video = new Map<number, TrackSource>();
  readonly #audio = new Map<number, TrackSource>();
  readonly #full = new Set<MediaKind>();
  #declared: Declared = NOTHING_DECLARED;

  constructor(log: Logger) {
    this.#log = log;
  }

  declare(declared: Declared): void {
    this.#declared = declared;
    for (const [trackId, source] of this.#video) source.declare(declared.video.get(trackId) ?? UNDECLARED);
    for (const [trackId, source] of this.#audio) source.declare(declared.audio.get(trackId) ?? UNDECLARED);
  }

  /**
   * @param trackId of Enhanced RTMP
   * @returns undefined when the source has too many tracks, which is logged once
   */
  find(kind: MediaKind, trackId: number): TrackSource | undefined {
    return this.#of(kind).get(trackId) ?? this.#add(kind, trackId);
  }

  *[Symbol.iterator](): Iterator<TrackSource> {
    yield* this.#video.values();
    yield* this.#audio.values();
  }

  #of(kind: MediaKind): Map<number, TrackSource> {
    return kind === 'video' ? this.#video : this.#audio;
  }

  #add(kind: MediaKind, trackId: number): TrackSource | undefined {
    const sources = this.#of(kind);
    if (sources.size >= MAX_TRACKS) {
      if (!this.#full.has(kind)) {
        this.#log.warn({ trackId }, `the publisher sends more than ${MAX_TRACKS} ${kind} tracks: the rest are ignored`);
      }
      this.#full.add(kind);
      return undefined;
    }
    const id = streamTrackId(kind, trackId);
    const source = kind === 'video' ? new VideoSource(id) : new AudioSource(id);
    source.declare(this.#declared[kind].get(trackId) ?? UNDECLARED);
    sources.set(trackId, source);
    return source;
  }
}
