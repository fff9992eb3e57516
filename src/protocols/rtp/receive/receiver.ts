import { createDepacketizer } from './create.ts';
import type { Depacketizer, FrameSink } from './depacketizer.ts';
import type { RtpFormat } from './format.ts';
import type { RtpPacket } from './packet.ts';
import { ReorderWindow, type ReorderSink } from './reorder-window.ts';

/** Receives one RTP stream. */
export interface ReceiverSink extends FrameSink {
  /** Number of packets that never came; their frames are reported as damaged. */
  lost(count: number): void;
  /** The stream begins anew: its timestamps are unrelated to those before. */
  restarted(): void;
}

/** One RTP stream: its packets, as they come, to whole frames, in order. */
export class RtpReceiver implements ReorderSink {
  readonly #window: ReorderWindow;
  readonly #sink: ReceiverSink;
  readonly #depacketizer: Depacketizer;

  /**
   * @param waitMs how long a packet that is missing is waited for; 0 where the transport keeps the order
   * @throws RtpError for a payload format that is not taken
   */
  constructor(format: RtpFormat, waitMs: number, sink: ReceiverSink) {
    this.#sink = sink;
    this.#depacketizer = createDepacketizer(format, sink);
    this.#window = new ReorderWindow(waitMs, this);
  }

  /** Source of the accepted packets; undefined before the first. */
  get ssrc(): number | undefined {
    return this.#window.ssrc;
  }

  /** Takes a packet, whose bytes are its own from now on. @param now in milliseconds of a monotonic clock */
  push(packet: RtpPacket, now: number): void {
    this.#window.push(packet, now);
    this.#window.tick(now);
  }

  /** Takes note of a packet that is none of the format. @returns whether it may be of the same source and count */
  other(packet: RtpPacket, now: number): boolean {
    const isOurs = this.#window.other(packet);
    this.#window.tick(now);
    return isOurs;
  }

  /** When `tick` has something to do; undefined when nothing is held up. */
  get deadline(): number | undefined {
    return this.#window.deadline;
  }

  /** Goes on without what was waited for long enough. */
  tick(now: number): void {
    this.#window.tick(now);
  }

  packet(packet: RtpPacket): void {
    this.#depacketizer.push(packet);
  }

  lost(count: number): void {
    this.#sink.lost(count);
    this.#depacketizer.lose();
  }

  restarted(): void {
    this.#depacketizer.lose();
    this.#sink.restarted();
  }
}
