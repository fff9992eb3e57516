import { sameSets, type MediaTrack } from '../core/track.ts';
import { FrameDuration } from './frame-duration.ts';
import type { PartForm } from './part-form.ts';
import type { Init } from './segment.ts';

/** Current configuration of a track, with the initialization of its segments. */
export class TrackFormat {
  readonly #form: Pick<PartForm<unknown>, 'describe' | 'isOver'>;
  #track: MediaTrack;
  #init: Init;
  /** Initialization from the next segment on; decoders need no reset for it. */
  #nextInit: Init | undefined;
  #durations: FrameDuration;

  /**
   * @param version of the initialization, unused so far for this track id
   * @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used
   */
  constructor(track: MediaTrack, form: Pick<PartForm<unknown>, 'describe' | 'isOver'>, version: number) {
    this.#form = form;
    this.#track = track;
    this.#init = form.describe(track, version);
    this.#durations = new FrameDuration(track);
  }

  get track(): MediaTrack {
    return this.#track;
  }

  get init(): Init {
    return this.#init;
  }

  get durations(): FrameDuration {
    return this.#durations;
  }

  /** Ticks of a second. */
  get den(): number {
    return this.#track.timebase.den;
  }

  get isAudio(): boolean {
    return this.#track.type === 'audio';
  }

  /** Seconds that a frame is expected to last. */
  get frameSeconds(): number {
    return this.#durations.estimate / this.den;
  }

  /** Makes the initialization of another configuration, for `replace`. @throws as the constructor */
  describe(track: MediaTrack): Init {
    return this.#form.describe(track, this.#init.version + 1);
  }

  /** Sets a configuration for which decoders must be set up anew. */
  replace(track: MediaTrack, init: Init): void {
    this.#track = track;
    this.#init = init;
    this.#nextInit = undefined;
    this.#durations = new FrameDuration(track);
  }

  /** Sets a configuration that decoders continue with. @throws as the constructor */
  update(track: MediaTrack): void {
    if (!sameSets(track, this.#track)) {
      const next = this.describe(track);
      if (next.codec !== this.#init.codec) this.#nextInit = next;
    }
    this.#track = track;
  }

  /** Whether a segment needs another initialization than the present one. */
  renews(msn: number): boolean {
    return this.#nextInit !== undefined || this.#isOver(msn);
  }

  /** Begins a segment. @param msn its number */
  begin(msn: number): void {
    this.#init = this.#nextInit ?? this.#init;
    this.#nextInit = undefined;
    if (this.#isOver(msn)) this.#init = this.#form.describe(this.#track, this.#init.version + 1, msn);
  }

  #isOver(msn: number): boolean {
    return this.#form.isOver?.(this.#init, msn) === true;
  }
}
