import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import { parseAvcConfig } from '../../codecs/h264.ts';
import { parseHevcConfig } from '../../codecs/h265.ts';
import { annexBToLengths, joinNals, nalUnits, type LengthSize } from '../../codecs/nal.ts';
import { videoState, type VideoFormat, type VideoState } from '../../containers/elementary/video.ts';
import { lookOf } from '../../codecs/vui.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { VideoTrack } from '../../core/track.ts';
import { BITSTREAM } from '../../protocols/ovt/enumerations.ts';
import type { Frame } from '../../protocols/ovt/media.ts';
import { checkForm, isConfiguration } from './frame-form.ts';
import type { SourceUnit, TrackSource } from './track-source.ts';

/** Video of an origin that is no node of this cluster. */
export class VideoSource implements TrackSource {
  readonly #described: VideoTrack;
  readonly #state: VideoState;
  #lengthSize: LengthSize = 4;
  #format: VideoFormat | undefined;
  #track: VideoTrack | undefined;

  constructor(described: VideoTrack) {
    this.#described = described;
    this.#state = videoState(described.codec);
    // a malformed record is no reason to fail: frames may have a valid one
    const { config } = described;
    if (config !== undefined) tolerant(() => this.#configure(config));
    this.#describe();
  }

  get track(): VideoTrack | undefined {
    return this.#track;
  }

  units(frame: Frame): readonly SourceUnit[] {
    const { codec } = this.#described;
    checkForm(codec, frame);
    const annexB = frame.bitstream === BITSTREAM.h264AnnexB || frame.bitstream === BITSTREAM.h265AnnexB;
    if (isConfiguration(frame) && !annexB) {
      this.#configure(frame.data);
      this.#describe();
      return [];
    }
    const unit = this.#state.frame(annexB ? annexBToLengths(frame.data) : this.#withLongLengths(frame.data));
    this.#describe();
    if (unit === undefined) {
      if (annexB && this.#track !== undefined) return [];
      throw new BitstreamError(`${codec} that cannot be decoded`);
    }
    return [{ data: unit.data, key: unit.key, duration: 0, offset: 0 }];
  }

  /** Applies a configuration, changed to lengths of 4 bytes, which frames get as well. */
  #configure(record: Buffer): void {
    const { codec } = this.#described;
    if (codec !== 'H264' && codec !== 'H265') return this.#state.configure(record);
    const { lengthSize } = codec === 'H264' ? parseAvcConfig(record) : parseHevcConfig(record);
    const copy = Buffer.from(record);
    const at = codec === 'H264' ? 4 : 21;
    copy[at] = (copy[at] as number) | 3;
    this.#state.configure(copy);
    this.#lengthSize = lengthSize;
  }

  #withLongLengths(data: Buffer): Buffer {
    return this.#lengthSize === 4 ? data : joinNals([...nalUnits(data, this.#lengthSize)]);
  }

  #describe(): void {
    const { format } = this.#state;
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    const { config: _, ...described } = this.#described;
    this.#track = Object.freeze({
      ...described,
      timebase: VIDEO_TIMEBASE,
      ...(format.config && { config: format.config }),
      ...(format.inBandSets && { inBandSets: format.inBandSets }),
      ...lookOf(format),
      width: format.width || described.width,
      height: format.height || described.height,
      framerate: described.framerate || format.framerate,
    });
  }
}
