import { BitstreamError } from '../../codecs/bits.ts';
import { AccessUnits, type AccessUnit } from '../../containers/mpegts/access-units.ts';
import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import type { PesHeader } from '../../containers/mpegts/pes-header.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import { LeadingPictures } from '../../core/leading-pictures.ts';
import { VideoIntake } from '../intake/video-intake.ts';
import type { Lane, LaneEvents } from './lane.ts';

/** Longest wait for a key frame after a loss: a source with gradual refresh has none. */
const KEY_WAIT_MS = 5000;

/** Video of one PID, which begins, and resumes after a loss, with a key frame. */
export class VideoLane implements Lane {
  readonly stream: ElementaryStream;
  readonly id: number;
  readonly index: number;
  readonly #events: LaneEvents;
  readonly #units: AccessUnits;
  readonly #intake: VideoIntake;
  #waitingSince: number | undefined = performance.now();
  readonly #leading = new LeadingPictures();

  constructor(stream: ElementaryStream, codec: 'H264' | 'H265', ids: Pick<Lane, 'id' | 'index'>, events: LaneEvents) {
    this.stream = stream;
    this.id = ids.id;
    this.index = ids.index;
    this.#events = events;
    this.#intake = new VideoIntake({ id: ids.id, codec });
    this.#units = new AccessUnits(codec, {
      unit: (unit) => this.#take(unit),
      damaged: (reason) => {
        events.fault(reason);
        this.#waitForKey();
      },
    });
  }

  get track(): Lane['track'] {
    return this.#intake.track;
  }

  pes(header: PesHeader, payload: Buffer): void {
    this.#units.push(header, payload);
  }

  lost(): void {
    this.#units.lost();
    this.#waitForKey();
  }

  flush(): void {
    this.#units.flush();
  }

  #take({ data, time, compositionTime }: AccessUnit): void {
    try {
      const unit = this.#intake.frame(data, time, compositionTime);
      if (this.#passes(unit.key, time + compositionTime)) this.#events.unit(unit);
      else this.#events.fault('video frames after a loss were dropped');
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#events.fault(error.message);
    }
  }

  #passes(key: MediaUnit['key'], pts: number): boolean {
    if (this.#waitingSince === undefined) return !this.#leading.waits || !this.#leading.drops({ key, pts });
    if (!key && performance.now() - this.#waitingSince < KEY_WAIT_MS) return false;
    this.#waitingSince = undefined;
    this.#leading.begin({ key, pts });
    return true;
  }

  #waitForKey(): void {
    this.#waitingSince ??= performance.now();
  }
}
