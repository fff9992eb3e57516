import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { parseAc3Frame } from '../../codecs/ac3.ts';
import { flacSamples, parseStreamInfo, streamInfoOf } from '../../codecs/flac.ts';
import { parseMpegAudioFrame } from '../../codecs/mpeg-audio.ts';
import { buildOpusConfig, packetSamples, parseOpusHead } from '../../codecs/opus.ts';
import type { AudioCodec } from '../../core/track.ts';

/** Format of an audio track, for a decoder; a change makes a new object. */
export interface AudioFormat {
  readonly config?: Buffer;
  readonly samplerate: number;
  readonly channels: number;
}

/** Follows the configuration of one codec and measures its frames. */
export interface AudioState {
  /** undefined until the stream has described it. */
  readonly format: AudioFormat | undefined;
  /** Applies the header of the stream. @throws BitstreamError */
  configure(header: Buffer): void;
  /** Samples of a frame at the track's rate; 0 for data that is no frame. @throws BitstreamError */
  samples(frame: Buffer): number;
}

/** Sample rate and channels of a bitstream without headers. */
export type PcmForm = Pick<AudioFormat, 'samplerate' | 'channels'>;

/** @param pcm of G.711 and the channels of G.722; by default one channel, of 8000 Hz in G.711 */
export function audioState(codec: AudioCodec, pcm?: PcmForm): AudioState {
  switch (codec) {
    case 'AAC':
      return new AacState();
    case 'OPUS':
      return new OpusState();
    case 'MP3':
      return new FramedState((frame) => mpegAudio(frame, 3));
    case 'MP2':
      return new FramedState((frame) => mpegAudio(frame, 2));
    case 'AC3':
    case 'EAC3':
      return new FramedState(parseAc3Frame);
    case 'FLAC':
      return new FlacState();
    case 'PCMA':
    case 'PCMU':
      return new PcmState(pcm);
    case 'G722':
      return new PcmState({ samplerate: G722_RATE, channels: pcm?.channels ?? 1 }, G722_SAMPLES);
  }
}

class AacState implements AudioState {
  format: AudioFormat | undefined;
  #samples = 0;

  configure(header: Buffer): void {
    if (this.format?.config?.equals(header)) return;
    const config = parseAudioSpecificConfig(header);
    this.#samples = Math.round((config.samplesPerFrame * config.outputSamplerate) / config.samplerate);
    this.format = {
      config: Buffer.from(header),
      samplerate: config.outputSamplerate,
      channels: config.outputChannels,
    };
  }

  samples(frame: Buffer): number {
    return frame.length === 0 ? 0 : this.#samples;
  }
}

const OPUS_TAGS = Buffer.from('OpusTags');
const OPUS_RATE = 48_000;
/**
 * Channels without a header: packets may change between mono and stereo at any time, each for itself alone (RFC 6716
 * section 3.1), and a decoder of two channels plays both (RFC 7587 section 3.4).
 */
const PLAYED_CHANNELS = 2;

class OpusState implements AudioState {
  format: AudioFormat | undefined;

  configure(header: Buffer): void {
    // the comment header may arrive the same way
    if (header.subarray(0, OPUS_TAGS.length).equals(OPUS_TAGS)) return;
    const head = parseOpusHead(header);
    this.#adopt(buildOpusConfig(head), head.channels);
  }

  samples(frame: Buffer): number {
    if (frame.length === 0) return 0;
    const samples = packetSamples(frame);
    if (this.format === undefined) {
      const config = buildOpusConfig({
        channels: PLAYED_CHANNELS,
        preSkip: 0,
        inputSamplerate: OPUS_RATE,
        outputGain: 0,
        mappingFamily: 0,
        mapping: undefined,
      });
      this.#adopt(config, PLAYED_CHANNELS);
    }
    return samples;
  }

  #adopt(config: Buffer, channels: number): void {
    if (this.format?.config?.equals(config)) return;
    this.format = { config, samplerate: OPUS_RATE, channels };
  }
}

class FlacState implements AudioState {
  format: AudioFormat | undefined;

  configure(header: Buffer): void {
    const config = streamInfoOf(header);
    if (this.format?.config?.equals(config)) return;
    const { samplerate, channels } = parseStreamInfo(config);
    this.format = { config: Buffer.from(config), samplerate, channels };
  }

  samples(frame: Buffer): number {
    return frame.length === 0 || this.format === undefined ? 0 : flacSamples(frame);
  }
}

interface FrameHeader {
  readonly samplerate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
}

/** State of codecs without configuration: every frame has the whole format. */
class FramedState implements AudioState {
  format: AudioFormat | undefined;
  readonly #parse: (frame: Buffer) => FrameHeader;

  constructor(parse: (frame: Buffer) => FrameHeader) {
    this.#parse = parse;
  }

  configure(): void {
    // nothing to take
  }

  samples(frame: Buffer): number {
    const { samplerate, channels, samplesPerFrame } = this.#parse(frame);
    if (this.format?.samplerate !== samplerate || this.format.channels !== channels) {
      this.format = { samplerate, channels };
    }
    return samplesPerFrame;
  }
}

function mpegAudio(frame: Buffer, expected: 2 | 3): FrameHeader {
  const header = parseMpegAudioFrame(frame);
  if (header.layer !== expected) throw new BitstreamError(`MPEG audio of layer ${header.layer}, not ${expected}`);
  return header;
}

const G711: PcmForm = Object.freeze({ samplerate: 8000, channels: 1 });
/** G.722: a byte for each two samples of each channel, of 16 kHz (RFC 3551 section 4.5.2). */
const G722_RATE = 16_000;
const G722_SAMPLES = 2;
const MIN_RATE = 4000;
const MAX_RATE = 192_000;
const MAX_CHANNELS = 8;

/** Form of a G.711 track: as announced where that is possible, else the usual rate and channels. */
export function pcmForm({ samplerate, channels }: PcmForm): PcmForm {
  return {
    samplerate: samplerate >= MIN_RATE && samplerate <= MAX_RATE ? samplerate : G711.samplerate,
    channels: channels >= 1 && channels <= MAX_CHANNELS ? channels : G711.channels,
  };
}

/** G.711, with a byte for each sample of each channel (RFC 3551 section 4.5.14), and G.722. */
class PcmState implements AudioState {
  readonly format: PcmForm;
  readonly #samplesOfByte: number;

  constructor({ samplerate, channels }: PcmForm = G711, samplesOfByte = 1) {
    this.#samplesOfByte = samplesOfByte;
    this.format = Object.freeze({ samplerate, channels });
  }

  configure(): void {
    // nothing to take
  }

  samples(frame: Buffer): number {
    return Math.floor((frame.length * this.#samplesOfByte) / this.format.channels);
  }
}
