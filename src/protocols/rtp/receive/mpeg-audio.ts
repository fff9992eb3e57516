import { BitstreamError } from '../../../codecs/bits.ts';
import { parseMpegAudioFrame } from '../../../codecs/mpeg-audio.ts';
import type { Depacketizer, FrameSink } from './depacketizer.ts';
import { RtpError } from './error.ts';
import type { RtpPacket } from './packet.ts';

/** MBZ and the offset of a fragment in its frame. */
const HEADER_BYTES = 4;

/** MPEG audio, layers II and III (RFC 2250 section 3.5): several whole frames in a packet, or one in several. */
export class MpegAudio implements Depacketizer {
  readonly #clockRate: number;
  readonly #sink: FrameSink;
  #parts: Buffer[] = [];
  /** Received bytes of a fragmented frame, and its size. */
  #have = 0;
  #whole = 0;
  #timestamp = 0;

  constructor(clockRate: number, sink: FrameSink) {
    this.#clockRate = clockRate;
    this.#sink = sink;
  }

  push({ payload, timestamp }: RtpPacket): void {
    if (payload.length === 0) return;
    try {
      if (payload.length <= HEADER_BYTES) throw new RtpError('an MPEG audio payload is too short');
      const offset = payload.readUInt16BE(2);
      const data = payload.subarray(HEADER_BYTES);
      if (offset === 0) this.#frames(data, timestamp);
      else this.#piece(data, offset);
    } catch (error) {
      if (!(error instanceof RtpError || error instanceof BitstreamError)) throw error;
      this.#forget();
      this.#sink.damaged(error.message);
    }
  }

  lose(): void {
    this.#forget();
    this.#sink.damaged('packets were lost');
  }

  #frames(data: Buffer, timestamp: number): void {
    this.#forget();
    let samples = 0;
    for (let at = 0; at < data.length;) {
      const { bytes, samplesPerFrame, samplerate } = parseMpegAudioFrame(data.subarray(at));
      const time = (timestamp + Math.round((samples * this.#clockRate) / samplerate)) >>> 0;
      if (at + bytes > data.length) {
        if (at > 0) throw new RtpError('an MPEG audio frame is cut off');
        this.#whole = bytes;
        this.#timestamp = time;
        this.#piece(data, 0);
        return;
      }
      this.#sink.frame(data.subarray(at, at + bytes), time);
      at += bytes;
      samples += samplesPerFrame;
    }
  }

  #piece(data: Buffer, offset: number): void {
    if (offset !== this.#have || this.#have + data.length > this.#whole) {
      throw new RtpError('a piece of an MPEG audio frame that does not fit');
    }
    this.#parts.push(data);
    this.#have += data.length;
    if (this.#have < this.#whole) return;
    const frame = Buffer.concat(this.#parts);
    this.#forget();
    this.#sink.frame(frame, this.#timestamp);
  }

  #forget(): void {
    this.#parts = [];
    this.#have = 0;
    this.#whole = 0;
  }
}
