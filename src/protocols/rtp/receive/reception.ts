import type { ReceptionBlock } from '../rtcp.ts';
import type { RtpPacket } from './packet.ts';
import type { SenderTime } from './rtcp.ts';

/** A larger step begins a new count. */
const MAX_DROPOUT = 3000;

/** Reception statistics of one source, for reports to its sender (RFC 3550 appendices A.1, A.3, A.8). */
export class Reception {
  readonly #clockRate: number;
  #ssrc: number | undefined;
  #base = 0;
  #highest = 0;
  #received = 0;
  #expectedBefore = 0;
  #receivedBefore = 0;
  #transit: number | undefined;
  #jitter = 0;
  #report: SenderTime | undefined;
  #reportAt = 0;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  /** Takes a packet in the order of its coming. @param now in milliseconds of any monotonic clock */
  packet({ ssrc, sequence, timestamp }: RtpPacket, now: number): void {
    const step = ((sequence - this.#highest) << 16) >> 16;
    if (ssrc !== this.#ssrc || Math.abs(step) > MAX_DROPOUT) this.#begin(ssrc, sequence);
    else if (step > 0) this.#highest += step;
    this.#received++;
    const transit = ((now * this.#clockRate) / 1000 - timestamp) % 2 ** 32;
    if (this.#transit !== undefined) {
      const change = Math.abs(transit - this.#transit) % 2 ** 32;
      this.#jitter += (Math.min(change, 2 ** 32 - change) - this.#jitter) / 16;
    }
    this.#transit = transit;
  }

  senderReport(report: SenderTime, now: number): void {
    this.#report = report;
    this.#reportAt = now;
  }

  /** Report block for the time since the last one; undefined when nothing came yet. */
  block(now: number): ReceptionBlock | undefined {
    if (this.#ssrc === undefined) return undefined;
    const expected = this.#highest - this.#base + 1;
    const expectedNow = expected - this.#expectedBefore;
    const lostNow = expectedNow - (this.#received - this.#receivedBefore);
    this.#expectedBefore = expected;
    this.#receivedBefore = this.#received;
    const report = this.#report?.ssrc === this.#ssrc ? this.#report : undefined;
    return {
      ssrc: this.#ssrc,
      fractionLost: lostNow <= 0 ? 0 : Math.min(255, Math.floor((lostNow * 256) / expectedNow)),
      lost: expected - this.#received,
      highest: this.#highest,
      jitter: this.#jitter,
      lastReport: report?.compactNtp ?? 0,
      sinceLastReport: report === undefined ? 0 : ((now - this.#reportAt) * 65_536) / 1000,
    };
  }

  #begin(ssrc: number, sequence: number): void {
    this.#ssrc = ssrc;
    this.#base = sequence;
    this.#highest = sequence;
    this.#received = 0;
    this.#expectedBefore = 0;
    this.#receivedBefore = 0;
    this.#transit = undefined;
    this.#jitter = 0;
  }
}
