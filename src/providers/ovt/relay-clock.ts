import { randomUUID } from 'node:crypto';
import type { RelayedRun } from '../../core/stream.ts';
import { toSeconds, type Timebase } from '../../core/timebase.ts';
import type { IntakeClock } from './intake.ts';

/** Of a run's tracks some begin earlier than what comes first. */
const LEAD_SECONDS = 0.5;
/** Nothing of one run is at the time of something of the one before. */
const MIN_GAP_SECONDS = 0.01;

/**
 * The times of a relay. The first run of its stream keeps those that it has at its owner; each later one goes on as long after
 * as it really took. One that comes by another connection goes on exactly where it was: what has come of it is known by its times.
 */
export class RelayClock implements IntakeClock {
  #run: Run | undefined;
  readonly #tracks = new Map<number, Place>();
  /** Latest time given out, in seconds, and when that was, in milliseconds of the monotonic clock. */
  #latest = 0;
  #latestAt: number | undefined;

  /** The one that comes now. */
  get run(): RelayedRun | undefined {
    return this.#run;
  }

  /** Until when all of some tracks have come of the present run, in seconds of the owner; undefined when nothing has. */
  positionOf(tracks: readonly number[]): number | undefined {
    const places = tracks.flatMap((id) => this.#tracks.get(id) ?? []);
    const times = places.map(({ last, shift, timebase }) => toSeconds(last - shift, timebase));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @param run undefined for one that is no other */
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
    this.#latest = Math.max(this.#latest, toSeconds(placed, timebase));
    this.#latestAt = now;
    return placed;
  }

  #start(run: Run, first: number, now: number): void {
    if (this.#latestAt === undefined) return run.start(0, -Infinity);
    const passed = Math.max(LEAD_SECONDS + MIN_GAP_SECONDS, (now - this.#latestAt) / 1000);
    run.start(this.#latest + passed - first, first - LEAD_SECONDS);
  }

  #placeOf(track: number, timebase: Timebase): Place {
    const known = this.#tracks.get(track);
    if (known?.timebase.num === timebase.num && known.timebase.den === timebase.den) return known;
    const place = { timebase, shift: this.#run?.shift(timebase) ?? 0, last: -Infinity, repeats: false };
    this.#tracks.set(track, place);
    return place;
  }
}

/** Where a track is. */
interface Place {
  readonly timebase: Timebase;
  readonly shift: number;
  last: number;
  /** What comes may have come by the connection before. */
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

  /** What is earlier, in seconds of the owner, is left out. */
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
