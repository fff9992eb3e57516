import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { parseMp3Frame } from '../../codecs/mp3.ts';
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
      return new Mp3State();
    case 'MP2':
      throw new BitstreamError('MP2 is taken from no source');
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
      config: Buffer.from(header), samplerate: config.outputSamplerate, channels: config.outputChannels,
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
        channels, preSkip: 0, inputSamplerate: OPUS_RATE, outputGain: 0, mappingFamily: 0, mapping: undefined,
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

class Mp3State implements AudioState {
  format: AudioFormat | undefined;

  configure(): void {
    // MP3 has no configuration: every frame tells everything.
  }

  samples(frame: Buffer): number {
    const { samplerate, channels, samplesPerFrame } = parseMp3Frame(frame);
    if (this.format?.samplerate !== samplerate || this.format.channels !== channels) {
      this.format = { samplerate, channels };
    }
    return samplesPerFrame;
  }
}
