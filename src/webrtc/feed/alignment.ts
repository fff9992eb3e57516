import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { MediaTrack } from '../../core/track.ts';

/** Longest time that a layer waits for slower ones. */
const MAX_HOLD_MS = 250;
/** Time for which the arrival of the earliest layer is remembered, at least; twice that at most. */
const WINDOW_MS = 1000;
/** Change of a layer's lag by one frame, at most: a burst after a stall changes little. */
const RISE_MS = 2;
const FALL_MS = 0.25;
/** A layer may begin with frames that it missed: while it catches up, its lag may shrink by this and more at once. */
const FRESH_MS = 5000;
const CATCH_UP_MS = 50;
/** Wait beyond the usual lag of the slowest layer, from which its frames differ. */
const GUARD_MS = 5;

interface Held {
  readonly layer: number;
  readonly packet: Packet;
  readonly lateMs: number;
  readonly mediaMs: number;
  /** Time by which it leaves, whatever the other layers do. */
  readonly deadline: number;
}

/**
 * Sends the layers of one video in step, though each arrives with a delay of its own: a source at once, its encoded renditions
 * some time later. Frames of one instant leave together, lowest layer first, as late as the slowest layer usually is. For a
 * viewer who is switched to another layer time goes on, and the audio stays in sync.
 *
 * The assumed delay of a layer changes by little steps and is kept while nothing comes: an encoder that dies or is behind for a
 * moment holds up no other layer.
 */
export class Alignment {
  readonly #send: (layer: number, packet: Packet, lateMs: number) => void;
  /** Usual delay of each layer after the earliest one; undefined before its first packet. */
  readonly #lags: (number | undefined)[];
  /** Until when each layer may catch up. */
  readonly #freshUntil: number[];
  /** Arrival time minus media time of the earliest packets: of this window and of the one before it. */
  #earliest = Infinity;
  #earliestBefore = Infinity;
  #windowEnd = -Infinity;
  /** In sending order. */
  #held: Held[] = [];
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;

  /**
   * @param layers how many, lowest first
   * @param send called with the lag that remains behind the other layers
   */
  constructor(layers: number, send: (layer: number, packet: Packet, lateMs: number) => void) {
    this.#lags = Array.from({ length: layers }, () => undefined);
    this.#freshUntil = this.#lags.map(() => 0);
    this.#send = send;
  }

  take(layer: number, packet: Packet): void {
    const now = Date.now();
    const mediaMs = toSeconds(packet.dts, (packet.track as MediaTrack).timebase) * 1000;
    const lag = this.#note(layer, now - mediaMs, now);
    const lateMs = Math.max(0, lag - this.#hold());
    this.#insert({ layer, packet, lateMs, mediaMs, deadline: now + MAX_HOLD_MS });
    this.#flushSoon();
  }

  close(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
    this.#timer = undefined;
    this.#turn = undefined;
    this.#held = [];
  }

  /** @returns usual delay of the layer after the earliest one */
  #note(layer: number, arrival: number, now: number): number {
    if (now > this.#windowEnd) {
      this.#earliestBefore = now > this.#windowEnd + WINDOW_MS ? Infinity : this.#earliest;
      this.#earliest = Infinity;
      this.#windowEnd = now + WINDOW_MS;
    }
    this.#earliest = Math.min(this.#earliest, arrival);
    const behind = arrival - this.#base();
    const known = this.#lags[layer];
    if (known === undefined) this.#freshUntil[layer] = now + FRESH_MS;
    const lag =
      known === undefined || this.#catchesUp(layer, known - behind, now)
        ? behind
        : known + Math.max(-FALL_MS, Math.min(RISE_MS, behind - known));
    this.#lags[layer] = lag;
    return lag;
  }

  #catchesUp(layer: number, byMs: number, now: number): boolean {
    return byMs > CATCH_UP_MS && now < (this.#freshUntil[layer] as number);
  }

  #base(): number {
    return Math.min(this.#earliest, this.#earliestBefore);
  }

  /** Delay of all packets after the arrival of the earliest layer. */
  #hold(): number {
    let most = 0;
    for (const lag of this.#lags) if (lag !== undefined && lag > most) most = lag;
    return Math.min(MAX_HOLD_MS, most + GUARD_MS);
  }

  #insert(entry: Held): void {
    let at = this.#held.length;
    for (; at > 0; at--) {
      const before = this.#held[at - 1] as Held;
      const inOrder =
        before.mediaMs < entry.mediaMs || (before.mediaMs === entry.mediaMs && before.layer < entry.layer);
      if (inOrder || before.layer === entry.layer) break;
    }
    this.#held.splice(at, 0, entry);
  }

  #flush(now: number): void {
    const leaves = this.#base() + this.#hold();
    let count = 0;
    for (const { mediaMs, deadline, layer, packet, lateMs } of this.#held) {
      const due = Math.min(mediaMs + leaves, deadline);
      if (due > now) {
        this.#timer = setTimeout(this.#flushSoon, due - now);
        break;
      }
      count++;
      this.#send(layer, packet, lateMs);
    }
    if (count > 0) this.#held.splice(0, count);
  }

  /** Runs at the end of this turn: after a stall of this process, all packets that arrived are read and put in order first. */
  readonly #flushSoon = (): void => {
    this.#turn ??= setImmediate(this.#onTurn);
  };

  readonly #onTurn = (): void => {
    this.#turn = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flush(Date.now());
  };
}
