import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { parseAc3Frame } from '../../codecs/ac3.ts';
import { parseMpegAudioFrame } from '../../codecs/mpeg-audio.ts';
import { buildOpusConfig, packetSamples, parseOpusHead } from '../../codecs/opus.ts';
import type { AudioCodec } from '../../core/track.ts';

/** What a decoder must know of an audio track; a change makes a new object. */
export interface AudioFormat {
  readonly config?: Buffer;
  readonly samplerate: number;
  readonly channels: number;
}

/** Follows the configuration of one codec and measures its frames. */
export interface AudioState {
  /** undefined until the stream told enough. */
  readonly format: AudioFormat | undefined;
  /** Takes the header of the stream. @throws BitstreamError */
  configure(header: Buffer): void;
  /** Samples of a frame at the track's rate, 0 when it is none. @throws BitstreamError */
  samples(frame: Buffer): number;
}

export function audioState(codec: AudioCodec): AudioState {
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
    case 'PCMA':
    case 'PCMU':
      return new PcmState();
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
const STEREO_BIT = 4;

class OpusState implements AudioState {
  format: AudioFormat | undefined;

  configure(header: Buffer): void {
    // The comment header may come the same way.
    if (header.subarray(0, OPUS_TAGS.length).equals(OPUS_TAGS)) return;
    const head = parseOpusHead(header);
    this.#adopt(buildOpusConfig(head), head.channels);
  }

  samples(frame: Buffer): number {
    if (frame.length === 0) return 0;
    const samples = packetSamples(frame);
    if (this.format === undefined) {
      const channels = ((frame[0] as number) & STEREO_BIT) === 0 ? 1 : 2;
      const config = buildOpusConfig({
        channels,
        preSkip: 0,
        inputSamplerate: OPUS_RATE,
        outputGain: 0,
        mappingFamily: 0,
        mapping: undefined,
      });
      this.#adopt(config, channels);
    }
    return samples;
  }

  #adopt(config: Buffer, channels: number): void {
    if (this.format?.config?.equals(config)) return;
    this.format = { config, samplerate: OPUS_RATE, channels };
  }
}

interface FrameHeader {
  readonly samplerate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
}

/** Of codecs without configuration: every frame tells everything. */
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

const G711 = Object.freeze({ samplerate: 8000, channels: 1 });

/** G.711 as everybody sends it: one channel, a byte for each sample. */
class PcmState implements AudioState {
  readonly format = G711;

  configure(): void {
    // nothing to take
  }

  samples(frame: Buffer): number {
    return frame.length;
  }
}
