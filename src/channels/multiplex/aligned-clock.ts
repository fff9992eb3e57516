import { shownAt } from '../../core/arrival-clock.ts';
import type { Packet } from '../../core/packet.ts';
import { isMedia } from '../../core/track.ts';

/** Limits of the start phase of a source, and how long no packet may have had a lower delay for it to end. */
const SETTLED_MS = { least: 1000, most: 3000, steady: 500 };
/** Smallest improvement that counts as a lower delay. */
const GAIN_MS = 5;
/** Window in which the packet of the least delay counts. */
const WINDOW_SECONDS = 10;
/** The mapping is adjusted from a difference of `begin` on, until it is at most `end`. */
const TOLERANCE_MS = { begin: 8, end: 1 };
/** Speed of adjustment per second: a share of the difference, and a minimum. */
const SLEW = { share: 0.1, leastMs: 1 };
/** A packet this much earlier or later belongs to another timeline; a late one only when lateness lasts this long. */
const JUMP_MS = 1000;
const LATE_FOR_MS = 1500;

/**
 * Maps the media time of a source to the monotonic clock of this node, by the packets with the least delay. Jitter
 * does not move it. It follows the drift of the source's clock slowly, so that times stay steady; only a jump of the
 * source's times moves it at once.
 */
export class AlignedClock {
  /** Node time minus media time, in milliseconds. */
  #offset = Infinity;
  /** The least offset of each second in the window, oldest first. */
  #window: { readonly second: number; least: number }[] = [];
  #startedAt = Infinity;
  #gainedAt = Infinity;
  #notedAt = 0;
  #isFixed = false;
  #isSlewing = false;
  #lateSince: number | undefined;
  #leastLate = Infinity;

  /** Milliseconds of this node's monotonic clock at media time 0; Infinity before the first packet. */
  get offset(): number {
    return this.#offset;
  }

  /** Whether the mapping is unlikely to change. @param now milliseconds of the monotonic clock */
  settled(now: number): boolean {
    const age = now - this.#startedAt;
    if (age >= SETTLED_MS.most) return true;
    return age >= SETTLED_MS.least && now - this.#gainedAt >= SETTLED_MS.steady;
  }

  /** Marks the times as in use: from now on the mapping moves slowly. */
  fix(): void {
    this.#isFixed = true;
  }

  /** Records the arrival of a packet. @param now milliseconds of the monotonic clock */
  note(packet: Packet, now: number): void {
    if (!isMedia(packet.track)) return;
    const offset = now - shownAt(packet) * 1000;
    if (this.#offset === Infinity) {
      this.#startedAt = now;
      this.#restart(offset, now);
    } else if (this.#isFixed && offset < this.#offset - JUMP_MS) {
      this.#restart(offset, now);
    } else if (!this.#jumpsLater(offset, now)) {
      const least = this.#leastWith(offset, now);
      if (this.#isFixed) this.#follow(least, now - this.#notedAt);
      else this.#gain(least, now);
    }
    this.#notedAt = now;
  }

  #gain(least: number, now: number): void {
    if (least < this.#offset - GAIN_MS) this.#gainedAt = now;
    this.#offset = least;
  }

  #jumpsLater(offset: number, now: number): boolean {
    if (offset <= this.#offset + JUMP_MS) {
      this.#lateSince = undefined;
      this.#leastLate = Infinity;
      return false;
    }
    this.#lateSince ??= now;
    this.#leastLate = Math.min(this.#leastLate, offset);
    if (now - this.#lateSince >= LATE_FOR_MS) this.#restart(this.#leastLate, now);
    return true;
  }

  #restart(offset: number, now: number): void {
    this.#offset = offset;
    this.#gainedAt = now;
    this.#isSlewing = false;
    this.#lateSince = undefined;
    this.#leastLate = Infinity;
    this.#window = [];
    this.#leastWith(offset, now);
  }

  #leastWith(offset: number, now: number): number {
    const second = Math.floor(now / 1000);
    const newest = this.#window.at(-1);
    if (newest?.second === second) newest.least = Math.min(newest.least, offset);
    else {
      this.#window.push({ second, least: offset });
      this.#window = this.#window.filter((one) => one.second > second - WINDOW_SECONDS);
    }
    let least = Infinity;
    for (const one of this.#window) if (one.least < least) least = one.least;
    return least;
  }

  #follow(target: number, passedMs: number): void {
    const distance = target - this.#offset;
    const size = Math.abs(distance);
    if (size > TOLERANCE_MS.begin) this.#isSlewing = true;
    if (!this.#isSlewing) return;
    const step = (Math.max(SLEW.leastMs, size * SLEW.share) * Math.min(passedMs, 1000)) / 1000;
    this.#offset += Math.sign(distance) * Math.min(step, size);
    if (size - step <= TOLERANCE_MS.end) this.#isSlewing = false;
  }
}
