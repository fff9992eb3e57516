import { BitstreamError } from '../../codecs/bits.ts';
import { lookOf } from '../../codecs/vui.ts';
import type { NutStream } from '../../containers/nut/format.ts';
import type { NutFrame } from '../../containers/nut/reader.ts';
import { VIDEO_TIMEBASE, type Timebase } from '../../core/timebase.ts';
import type { Timeline, TrackTimeline } from '../../core/timeline.ts';
import type { MediaTrack } from '../../core/track.ts';
import { OutputAdapter, type BitstreamFormat, type EncodedPacket } from '../../media-child/bitstream.ts';
import { FIRST_AUDIO_ID, VIDEO_ID, type ItemUnit, type TrackWishes } from './item-source.ts';
import { OFFSET_SECONDS, type TakenMedia } from './media-command.ts';

const NONE = Buffer.alloc(0);

export interface FileLaneOptions {
  readonly taken: TakenMedia;
  /** Index of the stream among those of its type. */
  readonly place: number;
  readonly wishes: TrackWishes;
  /** The stream as ffmpeg's NUT describes it. */
  readonly stream: NutStream;
  readonly timeline: Timeline;
  readonly onUnit: (unit: ItemUnit) => void;
}

/** One stream of a media file: turns ffmpeg's output frames into units of a track. */
export class FileLane {
  readonly #options: FileLaneOptions;
  readonly #adapter: OutputAdapter;
  #source: Timebase = VIDEO_TIMEBASE;
  #track: MediaTrack | undefined;
  #clock: TrackTimeline | undefined;
  #waitsForKey = true;

  /** @throws BitstreamError when its header is malformed */
  constructor(options: FileLaneOptions) {
    const { taken, stream } = options;
    this.#options = options;
    // key frames of VP8 and VP9 describe the stream fully, while containers have headers of their own for them
    const described = taken.codec === 'VP8' || taken.codec === 'VP9' ? { ...stream, extradata: NONE } : stream;
    this.#adapter = new OutputAdapter(taken.codec, described, {
      format: (format) => this.#follow(format),
      packet: (packet) => this.#packet(packet),
    });
  }

  /** @returns why the frame was dropped; undefined when it was not */
  push(frame: NutFrame): string | undefined {
    return this.#attempt(() => this.#adapter.push(frame));
  }

  end(): void {
    this.#attempt(() => this.#adapter.end());
  }

  #attempt(step: () => void): string | undefined {
    try {
      step();
      return undefined;
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#waitsForKey = true;
      return error.message;
    }
  }

  #follow(format: BitstreamFormat): void {
    this.#source = format.timebase;
    const track = this.#trackOf(format);
    if (this.#clock === undefined) this.#clock = this.#options.timeline.track(track.timebase);
    else this.#clock.setTimebase(track.timebase);
    this.#track = track;
  }

  #trackOf(format: BitstreamFormat): MediaTrack {
    const { config, inBandSets, width = 0, height = 0, samplerate = 0, channels = 0 } = format;
    const { taken, place, wishes, stream } = this.#options;
    const common = { bypass: false, bitrate: 0, ...(config && { config }) };
    if (taken.type === 'video') {
      const codec = taken.codec as Extract<MediaTrack, { type: 'video' }>['codec'];
      const size = stream.kind === 'video' ? stream : { width: 0, height: 0 };
      return Object.freeze({
        ...{ id: VIDEO_ID, name: 'Video', type: 'video', codec, timebase: VIDEO_TIMEBASE, framerate: 0 },
        ...{ width: width || size.width, height: height || size.height, keyFrameInterval: 0 },
        ...lookOf(format),
        ...(inBandSets && { inBandSets }),
        ...common,
      } satisfies MediaTrack);
    }
    const { name = 'Audio', language = taken.stream.language, characteristics } = wishes.audio[place] ?? {};
    return Object.freeze({
      ...{ id: FIRST_AUDIO_ID + place, name, type: 'audio', samplerate, channels },
      codec: taken.codec as Extract<MediaTrack, { type: 'audio' }>['codec'],
      timebase: Object.freeze({ num: 1, den: samplerate }),
      ...common,
      ...(language !== undefined && { language }),
      ...(characteristics !== undefined && { characteristics }),
    } satisfies MediaTrack);
  }

  #packet({ dts, pts, duration, key, data }: EncodedPacket): void {
    const track = this.#track;
    const clock = this.#clock;
    if (track === undefined || clock === undefined || (this.#waitsForKey && !key)) return;
    this.#waitsForKey = false;
    const { timebase } = track;
    const source = (dts * this.#source.num * VIDEO_TIMEBASE.den) / this.#source.den;
    const ticks = (this.#source.num * timebase.den) / (this.#source.den * timebase.num);
    const length = Math.round(duration * ticks);
    const decoded = length > 0 ? clock.nextFrame(source, length) : clock.next(source);
    const own = decoded - OFFSET_SECONDS * timebase.den;
    const shown = own + Math.max(0, Math.round((pts - dts) * ticks));
    const ms = (1000 * timebase.num) / timebase.den;
    this.#options.onUnit({
      ...{ track, dts: own, pts: shown, duration: length, key, data },
      ...{ at: own * ms, shownAt: shown * ms },
    });
  }
}
