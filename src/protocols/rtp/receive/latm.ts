import { parseAudioSpecificConfig } from '../../../codecs/aac.ts';
import { LatmReader } from '../../../codecs/aac-latm.ts';
import { BitstreamError } from '../../../codecs/bits.ts';
import type { Depacketizer, FrameSink } from './depacketizer.ts';
import { RtpError } from './error.ts';
import type { RtpFormat } from './format.ts';
import type { RtpPacket } from './packet.ts';

const MAX_ELEMENT_BYTES = 64 * 1024;

/** AAC as MP4A-LATM (RFC 6416 section 6): AudioMuxElements, whole or in pieces, with the configuration in them or apart. */
export class LatmAudio implements Depacketizer {
  readonly #clockRate: number;
  readonly #sink: FrameSink;
  readonly #reader = new LatmReader();
  readonly #isInBand: boolean;
  #config: Buffer | undefined;
  /** Duration of a frame, in RTP time. */
  #step = 0;
  #parts: Buffer[] = [];
  #bytes = 0;
  #timestamp = 0;
  #isDamaged = false;

  /** @throws RtpError when a configuration that comes apart is missing or malformed */
  constructor({ clockRate, parameters }: RtpFormat, sink: FrameSink) {
    this.#clockRate = clockRate;
    this.#sink = sink;
    this.#isInBand = parameters['cpresent']?.trim() !== '0';
    const config = Buffer.from(parameters['config'] ?? '', 'hex');
    if (config.length === 0 && this.#isInBand) return;
    try {
      this.#reader.configure(config);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      throw new RtpError(error.message);
    }
  }

  push({ payload, timestamp, marker }: RtpPacket): void {
    if (payload.length === 0) return;
    if (timestamp !== this.#timestamp && this.#parts.length > 0) this.#end();
    if (timestamp !== this.#timestamp) this.#isDamaged = false;
    this.#timestamp = timestamp;
    if (this.#isDamaged) return;
    this.#parts.push(payload);
    this.#bytes += payload.length;
    if (this.#bytes > MAX_ELEMENT_BYTES) this.#damage('an audio frame is too large');
    else if (marker) this.#end();
  }

  lose(): void {
    this.#damage('packets were lost');
  }

  #end(): void {
    const element = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#forget();
    try {
      const frames = this.#reader.element(element, this.#isInBand);
      this.#configure(this.#reader.config);
      frames.forEach((frame, index) => this.#sink.frame(frame, (this.#timestamp + index * this.#step) >>> 0));
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#sink.damaged(error.message);
    }
  }

  #configure(config: Buffer | undefined): void {
    if (config === undefined || config === this.#config) return;
    const { samplesPerFrame, samplerate } = parseAudioSpecificConfig(config);
    this.#step = Math.round((samplesPerFrame * this.#clockRate) / samplerate);
    this.#config = config;
    this.#sink.configuration(config);
  }

  #damage(reason: string): void {
    this.#isDamaged = this.#parts.length > 0;
    this.#forget();
    this.#sink.damaged(reason);
  }

  #forget(): void {
    this.#parts = [];
    this.#bytes = 0;
  }
}
