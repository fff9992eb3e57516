import type { TrackPart } from '../../containers/flv/extended.ts';
import { readVideoPart } from '../../containers/flv/video.ts';
import type { VideoTrack } from '../../core/track.ts';
import { UNDECLARED, type DeclaredTrack } from '../intake/declared.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import { VideoIntake } from '../intake/video-intake.ts';

const NANOS_PER_MS = 1_000_000;

/** One video track of a source: the parts of tags to frames in canonical form. */
export class VideoSource {
  readonly kind = 'video';
  readonly #id: number;
  #declared = UNDECLARED;
  #intake: VideoIntake | undefined;
  #track: VideoTrack | undefined;

  /** @param id of the track in its stream */
  constructor(id: number) {
    this.#id = id;
  }

  /** Undefined until the configuration is known; another object after each change. */
  get track(): VideoTrack | undefined {
    return this.#intake?.track ?? this.#track;
  }

  declare(declared: DeclaredTrack): void {
    this.#declared = declared;
    this.#intake?.declare(declared);
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for a part without a frame
   * @throws FlvError when the part is malformed or its codec is not supported
   * @throws BitstreamError when its data is malformed, or its configuration is not known yet
   */
  accept(part: TrackPart, timestamp: number): MediaUnit | undefined {
    const tag = readVideoPart(part);
    if (tag === undefined) return undefined;
    const { codec, packet, data, nanos, compositionTime } = tag;
    if (this.#intake?.codec !== codec) {
      this.#track = this.track;
      this.#intake = new VideoIntake({ id: this.#id, codec, declared: this.#declared });
    }
    if (packet === 'config') this.#intake.configure(data);
    return packet === 'frame' ? this.#intake.frame(data, timestamp + nanos / NANOS_PER_MS, compositionTime) : undefined;
  }
}
