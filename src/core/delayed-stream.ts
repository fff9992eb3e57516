import type { Packet } from './packet.ts';
import { Stream } from './stream.ts';
import type { Track } from './track.ts';

/** When the turn of a packet comes that came now; both in milliseconds of the monotonic clock. */
export type Schedule = (packet: Packet, now: number) => number;

/** Tracks that are set, or a packet, and when its turn comes. */
interface Held {
  readonly due: number;
  readonly tracks?: readonly Track[];
  readonly packet?: Packet;
}

/** By source and delay in milliseconds. */
const DELAYED = new WeakMap<Stream, Map<number, DelayedStream>>();

/**
 * A stream with the packets of another one, later. All readers that ask for the same delay share it; without a delay it is the
 * source itself.
 * @param delayMs milliseconds
 */
export function delayed(source: Stream, delayMs: number): Stream {
  if (delayMs === 0) return source;
  const all = DELAYED.get(source) ?? new Map<number, DelayedStream>();
  const stream = all.get(delayMs) ?? new DelayedStream(source, (_packet, now) => now + delayMs);
  DELAYED.set(source, all.set(delayMs, stream));
  return stream;
}

/**
 * Packets of another stream, later, and its changes of tracks between them. It reads from its creation on, so that a new reader does
 * not wait for the delay, and ends with the source: packets that it still holds are dropped.
 */
export class DelayedStream extends Stream {
  readonly #source: Stream;
  readonly #schedule: Schedule;
  readonly #held: Held[] = [];
  /** Turn of what came last. */
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: Stream, schedule: Schedule) {
    super(source.name, source.counters);
    this.#source = source;
    this.#schedule = schedule;
    this.on('fault', (error) => source.emit('fault', error));
    this.setTracks(source.tracks);
    source.on('tracks', (tracks) => this.#hold({ due: this.#last, tracks }));
    source.read({
      packet: (packet) => {
        this.#last = Math.max(this.#last, this.#schedule(packet, performance.now()));
        this.#hold({ due: this.#last, packet });
      },
      close: (reason) => this.close(reason),
    });
  }

  override wantKey(): void {
    this.#source.wantKey();
  }

  protected override closeChildren(): void {
    clearTimeout(this.#timer);
    this.#held.length = 0;
  }

  #hold(held: Held): void {
    if (this.closed) return;
    this.#held.push(held);
    this.#timer ??= this.#releaseAt(held.due);
  }

  #releaseAt(due: number): NodeJS.Timeout {
    return setTimeout(this.#release, Math.max(0, Math.ceil(due - performance.now())));
  }

  readonly #release = (): void => {
    const now = performance.now();
    const later = this.#held.findIndex(({ due }) => due > now);
    for (const { tracks, packet } of this.#held.splice(0, later < 0 ? this.#held.length : later)) {
      if (tracks !== undefined) this.#setTracks(tracks);
      if (packet !== undefined) this.write(packet);
    }
    const [next] = this.#held;
    this.#timer = next && this.#releaseAt(next.due);
  };

  /** Nothing is above a timer that could take what a listener throws. */
  #setTracks(tracks: readonly Track[]): void {
    try {
      this.setTracks(tracks);
    } catch (error) {
      this.emit('fault', error);
    }
  }
}
