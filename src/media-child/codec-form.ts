import { parseAdtsHeader } from '../codecs/aac-adts.ts';
import { configOfAdts } from '../codecs/aac-program.ts';
import * as av1 from '../codecs/av1.ts';
import { BitstreamError } from '../codecs/bits.ts';
import { annexBToLengths } from '../codecs/nal.ts';
import type { Look } from '../codecs/vui.ts';
import { avifFile } from '../containers/avif.ts';
import { audioState, pcmForm, type AudioState } from '../containers/elementary/audio.ts';
import { videoState, type VideoState } from '../containers/elementary/video.ts';
import type { NutStream } from '../containers/nut/format.ts';
import type { Packet } from '../core/packet.ts';
import { rescale, type Timebase } from '../core/timebase.ts';
import type { AudioCodec, ImageCodec, VideoCodec } from '../core/track.ts';
import { reorderedFrames } from '../core/reordering.ts';

/** Codecs whose packets are converted to a canonical form. */
export type CodedForm = VideoCodec | AudioCodec | ImageCodec;

interface CodecFormat extends Look {
  readonly config?: Buffer;
  readonly inBandSets?: true;
  readonly width?: number;
  readonly height?: number;
  readonly samplerate?: number;
  readonly channels?: number;
}

interface CanonicalFrame {
  readonly data: Buffer;
  readonly key: Packet['key'];
  /** In the stream's timebase; 0 if unknown. */
  readonly duration: number;
}

/** Converts the output of an encoder to the canonical form of its codec. */
export interface CodecForm {
  /** Undefined until the bitstream has contained enough; a change makes a new object. */
  readonly format: CodecFormat | undefined;
  /** Frames that can precede another in decoding and follow it in output. Known once there is a format. */
  readonly reorderedFrames: number;
  /** Sets the configuration of the next frames, in the form of the stream's header. @throws BitstreamError if it is malformed */
  configure(extradata: Buffer): void;
  /** Converts a frame, maybe in place; undefined if it cannot be decoded. @throws BitstreamError */
  take(data: Buffer): CanonicalFrame | undefined;
}

/** @throws BitstreamError if the encoder's headers are malformed */
export function codecForm(codec: CodedForm, stream: NutStream): CodecForm {
  switch (codec) {
    case 'H264':
    case 'H265':
    case 'AV1':
    case 'VP8':
    case 'VP9':
      return new VideoForm(codec, stream);
    case 'AAC':
    case 'OPUS':
    case 'MP3':
    case 'MP2':
    case 'AC3':
    case 'EAC3':
    case 'FLAC':
    case 'PCMA':
    case 'PCMU':
    case 'G722':
      return new AudioForm(codec, stream);
    case 'JPEG':
    case 'PNG':
    case 'WEBP':
      return new ImageForm(stream);
    case 'AVIF':
      return new AvifForm(stream);
  }
}

/** First byte of avcC and hvcC; Annex B begins with a 0. */
const RECORD_VERSION = 1;
/** First byte of av1C; OBUs never have the highest bit. */
const AV1_RECORD = 0x80;

class VideoForm implements CodecForm {
  readonly #codec: VideoCodec;
  readonly #stream: NutStream;
  readonly #state: VideoState;
  readonly #annexB: boolean;

  constructor(codec: VideoCodec, stream: NutStream) {
    const { extradata } = stream;
    this.#codec = codec;
    this.#stream = stream;
    this.#state = videoState(codec);
    // an encoder without a record writes start codes, even if its packets look as if they began with a length
    this.#annexB = (codec === 'H264' || codec === 'H265') && extradata[0] !== RECORD_VERSION;
    this.configure(extradata);
  }

  configure(extradata: Buffer): void {
    const [first] = extradata;
    if (first === undefined) return;
    if (this.#annexB) this.#state.frame(annexBToLengths(Buffer.from(extradata)));
    else if (this.#codec === 'AV1' && (first & AV1_RECORD) === 0) this.#state.configure(av1.buildAv1Config(extradata));
    else this.#state.configure(extradata);
  }

  get format(): CodecFormat | undefined {
    return this.#state.format;
  }

  get reorderedFrames(): number {
    // libx265 signals its B-frames in the SPS only, not to the muxer
    return reorderedFrames(this.#codec, this.format?.config) ?? this.#stream.decodeDelay;
  }

  take(data: Buffer): CanonicalFrame | undefined {
    const frame = this.#state.frame(this.#annexB ? annexBToLengths(data) : data);
    return frame && { data: frame.data, key: frame.key, duration: 0 };
  }
}

class AudioForm implements CodecForm {
  readonly reorderedFrames = 0;
  readonly #state: AudioState;
  readonly #timebase: Timebase;
  /** AAC frames without a configuration have ADTS headers, as in MPEG-TS. */
  readonly #isAdts: boolean;

  constructor(codec: AudioCodec, stream: NutStream) {
    const { extradata, timebase } = stream;
    this.#state = audioState(codec, stream.kind === 'audio' ? pcmForm(stream) : undefined);
    this.#timebase = timebase;
    this.#isAdts = codec === 'AAC' && extradata.length === 0;
    this.configure(extradata);
  }

  configure(extradata: Buffer): void {
    if (extradata.length > 0) this.#state.configure(extradata);
  }

  get format(): CodecFormat | undefined {
    return this.#state.format;
  }

  take(taken: Buffer): CanonicalFrame | undefined {
    const data = this.#isAdts ? this.#unwrap(taken) : taken;
    const samples = this.#state.samples(data);
    const { format } = this.#state;
    if (samples === 0 || format === undefined) return undefined;
    const duration = rescale(samples, { num: 1, den: format.samplerate }, this.#timebase);
    return { data, key: true, duration };
  }

  #unwrap(frame: Buffer): Buffer {
    const header = parseAdtsHeader(frame);
    if (header.blocks > 1) throw new BitstreamError('an ADTS frame holds several raw data blocks');
    const data = frame.subarray(header.headerLength, header.frameLength);
    if (header.channelConfiguration !== 0 || this.format === undefined)
      this.#state.configure(configOfAdts(header, data));
    return data;
  }
}

/** Images: every packet is a file, of the size that the encoder was opened with. */
class ImageForm implements CodecForm {
  readonly reorderedFrames = 0;
  readonly format: CodecFormat;

  constructor(stream: NutStream) {
    if (stream.kind !== 'video') throw new BitstreamError('an image encoder put out audio');
    this.format = { width: stream.width, height: stream.height };
  }

  configure(): void {
    // an image needs no configuration
  }

  take(data: Buffer): CanonicalFrame | undefined {
    return data.length === 0 ? undefined : { data, key: true, duration: 0 };
  }
}

class AvifForm implements CodecForm {
  readonly reorderedFrames = 0;
  readonly #video: VideoForm;
  #record: CodecFormat | undefined;
  format: CodecFormat | undefined;

  constructor(stream: NutStream) {
    this.#video = new VideoForm('AV1', stream);
  }

  configure(extradata: Buffer): void {
    this.#video.configure(extradata);
  }

  take(data: Buffer): CanonicalFrame | undefined {
    const frame = this.#video.take(data);
    const { format } = this.#video;
    if (frame === undefined || format === undefined) return undefined;
    if (!frame.key) throw new BitstreamError('an AV1 frame that needs other frames is not an image');
    if (format !== this.#record) {
      this.#record = format;
      this.format = { width: format.width, height: format.height };
    }
    return { ...frame, data: avifFile(frame.data) };
  }
}
