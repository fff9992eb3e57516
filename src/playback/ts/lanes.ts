import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import { joinNals } from '../../codecs/nal.ts';
import { audioSyntax, type AudioForm } from '../../containers/mpegts/audio-syntax.ts';
import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import type { MediaTrack } from '../../core/track.ts';
import { AudioIntake } from '../../providers/intake/audio-intake.ts';
import { UNDECLARED } from '../../providers/intake/declared.ts';
import { VideoIntake } from '../../providers/intake/video-intake.ts';
import { audioFramesOf, frameBytes, frameHead, type CarriedForm, type VideoForm } from './forms.ts';
import type { TsFileUnit } from './unit-reader.ts';

/** A sample without its bytes. */
export interface TsSample {
  /** Bytes in the form of MP4. */
  readonly size: number;
  readonly key: boolean;
  /** Ticks of the track, 0 where it follows from the next sample. */
  readonly duration: number;
}

/** Samples of a PES packet. */
export interface TsSamples {
  /** Format of the samples: another object after each change. */
  readonly track: MediaTrack;
  readonly samples: readonly TsSample[];
  /** Whether the parameter sets of video stay in the samples, from here on. */
  readonly keepsSets: boolean;
}

/** Follows the format of a stream in a file. */
export interface TsLane {
  readonly stream: ElementaryStream & { readonly form: CarriedForm };
  /**
   * @returns undefined for a PES packet that has no samples, whatever was before; 'unknown' for one that cannot be decoded after
   * what was before; 'other' for a codec that MP4 does not carry
   */
  read(unit: TsFileUnit): TsSamples | undefined | 'unknown' | 'other';
}

export function laneOf(stream: TsLane['stream']): TsLane {
  return stream.kind === 'video' ? new VideoLane(stream, stream.form as VideoForm) : new AudioLane(stream);
}

class VideoLane implements TsLane {
  readonly stream: TsLane['stream'];
  readonly #form: VideoForm;
  readonly #intake: VideoIntake;
  #keepsSets = false;

  constructor(stream: TsLane['stream'], form: VideoForm) {
    this.stream = stream;
    this.#form = form;
    this.#intake = new VideoIntake({ id: stream.pid, codec: form });
  }

  read({ payload, bytes }: TsFileUnit): TsSamples | undefined | 'unknown' {
    const head = frameHead(this.#form, payload);
    if (head === undefined) return undefined;
    const before = this.#intake.track;
    const unit = tolerant(() => this.#intake.frame(joinNals(head.nals), 0, 0));
    if (unit === undefined) return 'unknown';
    const track = unit.track as MediaTrack & { readonly type: 'video' };
    // a decoder that knows a set would go on with it where another one was sent
    if (track.inBandSets === true) this.#keepsSets = true;
    else if (track !== before) this.#keepsSets = false;
    const size = frameBytes(head, bytes, this.#keepsSets);
    return { track, samples: [{ size, key: unit.key !== false, duration: 0 }], keepsSets: this.#keepsSets };
  }
}

class AudioLane implements TsLane {
  readonly stream: TsLane['stream'];
  readonly #syntax: ReturnType<typeof audioSyntax>;
  #intake: AudioIntake | undefined;
  #header: Buffer | undefined;

  constructor(stream: TsLane['stream']) {
    this.stream = stream;
    this.#syntax = audioSyntax(stream.form as AudioForm, stream.header);
  }

  read({ payload }: TsFileUnit): TsSamples | undefined | 'unknown' | 'other' {
    const frames = audioFramesOf(this.#syntax, payload);
    const [first] = frames;
    if (first === undefined) return undefined;
    if (first.codec !== 'AAC' && first.codec !== 'MP3' && first.codec !== 'OPUS') return 'other';
    const { language } = this.stream;
    if (this.#intake?.codec !== first.codec) {
      this.#header = undefined;
      this.#intake = new AudioIntake({
        id: this.stream.pid,
        codec: first.codec,
        declared: { ...UNDECLARED, language },
      });
    }
    const samples: TsSample[] = [];
    let track: MediaTrack | undefined;
    try {
      for (const { data, header } of frames) {
        if (header !== undefined && header !== this.#header) {
          this.#intake.configure(header);
          this.#header = header;
        }
        const unit = this.#intake.frame(data, 0);
        // its format changes within a PES packet
        if (unit === undefined || (track !== undefined && unit.track !== track)) return 'unknown';
        track = unit.track as MediaTrack;
        samples.push({ size: data.length, key: true, duration: unit.duration });
      }
    } catch (error) {
      if (error instanceof BitstreamError) return 'unknown';
      throw error;
    }
    return track && { track, samples, keepsSets: false };
  }
}
