import { randomUUID } from 'node:crypto';
import type { RelayedRun } from '../core/output-stream.ts';
import { toSeconds, type Timebase } from '../core/timebase.ts';
import { LEAD_SECONDS, PassedTime } from '../providers/intake/passed-time.ts';
import type { IntakeClock } from '../providers/ovt/intake.ts';

/**
 * Timestamps of a relay. The first run of the stream keeps its owner's. Each later run continues after the time that really
 * passed. A run that another connection carries on keeps its timestamps, which tell what has arrived already.
 */
export class RelayClock implements IntakeClock {
  #run: Run | undefined;
  readonly #tracks = new Map<number, Place>();
  readonly #passed = new PassedTime();

  get run(): RelayedRun | undefined {
    return this.#run;
  }

  /** Time up to which all of some tracks arrived in the present run, in seconds of the owner; undefined before anything did. */
  positionOf(tracks: readonly number[]): number | undefined {
    const places = tracks.flatMap((id) => this.#tracks.get(id) ?? []);
    const times = places.map(({ last, shift, timebase }) => toSeconds(last - shift, timebase));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @param run id; undefined starts a new run */
  restart(run: string = randomUUID()): void {
    if (run === this.#run?.id) {
      for (const place of this.#tracks.values()) place.repeats = true;
      return;
    }
    this.#run = new Run(run);
    this.#tracks.clear();
  }

  precedes(track: number, time: number, timebase: Timebase): boolean {
    return !this.#tracks.has(track) && toSeconds(time, timebase) < (this.#run?.from ?? -Infinity);
  }

  next(track: number, time: number, _source: Timebase, timebase: Timebase, _samples: number, now: number) {
    if (this.#run?.started === false) this.#start(this.#run, toSeconds(time, timebase), now);
    const place = this.#placeOf(track, timebase);
    let placed = time + place.shift;
    if (placed > place.last) place.repeats = false;
    else if (place.repeats) return undefined;
    else placed = place.last + 1;
    place.last = placed;
    this.#passed.note(toSeconds(placed, timebase), now);
    return placed;
  }

  #start(run: Run, first: number, now: number): void {
    const next = this.#passed.next(now);
    if (next === undefined) run.start(0, -Infinity);
    else run.start(next - first, first - LEAD_SECONDS);
  }

  #placeOf(track: number, timebase: Timebase): Place {
    const known = this.#tracks.get(track);
    if (known?.timebase.num === timebase.num && known.timebase.den === timebase.den) return known;
    const place = { timebase, shift: this.#run?.shift(timebase) ?? 0, last: -Infinity, repeats: false };
    this.#tracks.set(track, place);
    return place;
  }
}

interface Place {
  readonly timebase: Timebase;
  readonly shift: number;
  last: number;
  /** Packets may repeat those of the connection before. */
  repeats: boolean;
}

class Run implements RelayedRun {
  readonly id: string;
  #started = false;
  #seconds = 0;
  #from = -Infinity;

  constructor(id: string) {
    this.id = id;
  }

  get started(): boolean {
    return this.#started;
  }

  /** Seconds of the owner: earlier media is dropped. */
  get from(): number {
    return this.#from;
  }

  shift({ num, den }: Timebase): number {
    return Math.round((this.#seconds * den) / num);
  }

  start(seconds: number, from: number): void {
    this.#started = true;
    this.#seconds = seconds;
    this.#from = from;
  }
}
