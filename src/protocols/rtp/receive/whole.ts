import type { Depacketizer, FrameSink } from './depacketizer.ts';
import type { RtpPacket } from './packet.ts';

/** Formats whose packets are whole frames: Opus (RFC 7587), G.711 and G.722 (RFC 3551 section 4.5), MPEG-TS (RFC 2250 section 2). */
export class WholeFrames implements Depacketizer {
  readonly #sink: FrameSink;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  push({ payload, timestamp }: RtpPacket): void {
    if (payload.length > 0) this.#sink.frame(payload, timestamp);
  }

  lose(): void {
    this.#sink.damaged('packets were lost');
  }
}
