import { BitstreamError } from '../../codecs/bits.ts';
import { AudioFrames } from '../../containers/mpegts/audio-frames.ts';
import { audioSyntax, type AudioForm, type AudioFrame } from '../../containers/mpegts/audio-syntax.ts';
import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import type { PesHeader } from '../../containers/mpegts/pes-header.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { UNDECLARED } from '../intake/declared.ts';
import type { Lane, LaneEvents } from './lane.ts';

/** Item of an AudioMap (docs/compatibility.md#configuration). */
export interface AudioMapItem {
  readonly name: string;
  readonly language?: string;
  readonly characteristics?: string;
}

/** Audio of one PID. Its codec is known from its frames, not from the PMT. */
export class AudioLane implements Lane {
  readonly stream: ElementaryStream;
  readonly id: number;
  readonly index: number;
  readonly #events: LaneEvents;
  readonly #frames: AudioFrames;
  readonly #item: AudioMapItem | undefined;
  #intake: AudioIntake | undefined;
  #header: Buffer | undefined;

  /** @param isFile whether it is read from a file, faster than it plays */
  constructor(
    stream: ElementaryStream,
    ids: Pick<Lane, 'id' | 'index'>,
    item: AudioMapItem | undefined,
    events: LaneEvents,
    isFile = false,
  ) {
    this.stream = stream;
    this.id = ids.id;
    this.index = ids.index;
    this.#events = events;
    this.#item = item;
    const frame = (one: AudioFrame, time: number): void => this.#take(one, time);
    const fault = (reason: string): void => events.fault(reason);
    this.#frames = new AudioFrames(audioSyntax(stream.form as AudioForm, stream.header), { frame, fault }, isFile);
  }

  get track(): Lane['track'] {
    return this.#intake?.track;
  }

  pes({ pts }: Pick<PesHeader, 'pts'>, payload: Buffer): void {
    this.#frames.push(payload, pts);
  }

  lost(): void {
    this.#frames.lost();
  }

  flush(): void {
    // each frame was given out when it was whole
  }

  #take({ codec, data, header }: AudioFrame, time: number): void {
    try {
      if (this.#intake?.codec !== codec) this.#intake = this.#open(codec);
      if (header !== undefined && header !== this.#header) {
        this.#intake.configure(header);
        this.#header = header;
      }
      const unit = this.#intake.frame(data, time);
      if (unit !== undefined) this.#events.unit(unit);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#events.fault(error.message);
    }
  }

  #open(codec: AudioFrame['codec']): AudioIntake {
    const { name, characteristics, language = this.stream.language } = this.#item ?? {};
    this.#header = undefined;
    return new AudioIntake({
      id: this.id,
      codec,
      ...(name && { name }),
      ...(characteristics && { characteristics }),
      declared: { ...UNDECLARED, language },
    });
  }
}
