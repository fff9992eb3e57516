import type { Packet } from '../../core/packet.ts';
import type { Logger } from '../../log/log.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';
import { ChannelWriter } from './channel-writer.ts';
import { SmoothedWallClock, type ChannelClock } from './clock.ts';
import type { ItemSource } from './item-source.ts';
import { OpenItem } from './open-item.ts';
import { programAt, type LengthOf, type Planned } from './plan.ts';
import type { ScheduleReport } from './report.ts';
import { ReadyItems } from './ready-items.ts';
import type { Item, Program, ScheduleSpec } from './spec.ts';
import { StepTimer } from './step-timer.ts';
import { StreamTrouble } from './stream-trouble.ts';
import { UpcomingItems } from './upcoming-items.ts';

/** Longest and shortest pause between two steps. */
const LOOK_MS = 250;
const STEP_MS = 4;
/** Interval between searches for a join position. */
const SEARCH_MS = 20;
/** Most turns of one step: consequences of one turn are handled in the next one at once. */
const TURNS = 8;
/** After silence of the stream, the fallback program begins no further in the past than this. */
const CAUGHT_UP_MS = 500;

/**
 * Phase of a channel. It begins silent, and only these transitions exist:
 *
 *     silent, playing, outdated -> playing   an item begins (`begun`)
 *     playing -> outdated   the changed schedule does not have the item, which plays until another one can (`replanned`)
 *     outdated -> playing   the schedule has it again (`replanned`)
 *     playing, outdated -> silent   the item is over or has failed (`ended`)
 *     any -> closed   `close`, which is final
 */
type Phase =
  | { readonly kind: 'silent' | 'closed' }
  | { readonly kind: 'playing' | 'outdated'; readonly item: OpenItem };

function begun(item: OpenItem): Phase {
  return { kind: 'playing', item };
}

function replanned(phase: Phase, isScheduled: boolean): Phase {
  return 'item' in phase ? { kind: isScheduled ? 'playing' : 'outdated', item: phase.item } : phase;
}

/** The phase after the end of an item, which need not be on the air. */
function ended(phase: Phase, item: OpenItem): Phase {
  return 'item' in phase && phase.item === item ? { kind: 'silent' } : phase;
}

/** Schedule that is in use. */
interface Schedule {
  readonly spec: ScheduleSpec;
  readonly upcoming: UpcomingItems;
  /** URLs that it may play. */
  readonly urls: ReadonlySet<string>;
}

export interface ChannelOptions {
  readonly spec: ScheduleSpec;
  readonly sink: TrackSink;
  readonly clock: ChannelClock;
  readonly lengthOf: LengthOf;
  /** Measures the lengths of items until the signal aborts. */
  readonly measure: (urls: readonly string[], signal: AbortSignal) => Promise<void>;
  /** Called when a file was read to its end; `length` in milliseconds. */
  readonly played: (url: string, length: number) => void;
  /** Opens an item at a position in milliseconds. `onChange` as in FileSource. */
  readonly open: (item: Item, position: number, onChange: () => void) => ItemSource;
  /** Called with each item that starts to play. */
  readonly plays: (item: { readonly program: string; readonly url: string }) => void;
  readonly log: Logger;
}

/**
 * Plays a schedule on one timeline, in real time. Each item is opened ahead, begins at its planned time, and is cut
 * when the next one begins. The fallback program plays while nothing is scheduled or an item fails; without one there
 * is silence.
 */
export class Channel {
  readonly #options: ChannelOptions;
  readonly #clock: ChannelClock;
  readonly #wall: SmoothedWallClock;
  readonly #writer: ChannelWriter;
  readonly #timer: StepTimer;
  readonly #ready: ReadyItems;
  readonly #trouble = new StreamTrouble();
  #phase: Phase = { kind: 'silent' };
  #schedule: Schedule;
  /** File lengths differ from those of the plan. */
  #isPlanOld = false;
  /** Ends the measuring for the newest schedule. */
  #measuring = new AbortController();

  constructor(options: ChannelOptions) {
    const { spec, sink, clock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#wall = new SmoothedWallClock(clock);
    this.#writer = new ChannelWriter(sink);
    this.#timer = new StepTimer(clock, () => this.#step());
    this.#schedule = this.#scheduleOf(spec);
    this.#ready = new ReadyItems((...item) => this.#open(...item));
  }

  /** Starts to play, once the lengths of the items that it depends on are known as far as possible. */
  async start(): Promise<void> {
    await this.#measure(this.#schedule.spec);
    this.#step();
  }

  /** Replaces the schedule. An item that both schedules have at this time is not interrupted. */
  async change(spec: ScheduleSpec): Promise<void> {
    const signal = await this.#measure(spec);
    if (signal.aborted) return;
    this.#schedule = this.#scheduleOf(spec);
    this.#replan();
    this.#step();
  }

  /** Replans after the length of a file became known or changed. */
  replan(url: string): void {
    if (!this.#schedule.urls.has(url)) return;
    this.#isPlanOld = true;
    this.#wake();
  }

  report(): ScheduleReport {
    const now = this.#clock.monotonic();
    const wall = this.#wall.at(now);
    const { timetable } = this.#schedule.upcoming;
    const onAir = this.#onAir;
    const planned = onAir?.planned ?? timetable.at(wall);
    const fallback = onAir?.isFallback === true;
    if (planned === undefined) return { fallback };
    const { name, repeat, scheduled } = timetable.definition(planned.program);
    const ends = fallback ? undefined : timetable.after(wall);
    const program = { name, scheduled: fallback ? 0 : scheduled, repeat, ...(ends !== undefined && { ends }) };
    if (onAir === undefined) return { program, fallback };
    const { url, start, duration } = planned.item;
    return { program, item: { url, start, duration, position: onAir.position(now) }, fallback };
  }

  /**
   * Scheduled time of a packet that is being written to the sink, in milliseconds since the epoch. It follows from
   * the item and the position in it, so for files it is the same on every node.
   */
  scheduledAt(packet: Packet): number {
    const shown = this.#writer.shownAt(packet);
    const item = this.#onAir;
    return item === undefined ? this.#wall.at(shown) : item.planned.begins + item.position(shown);
  }

  /** Stops writing. Idempotent. */
  close(): void {
    this.#measuring.abort();
    this.#timer.close();
    this.#onAir?.close();
    this.#ready.close();
    this.#phase = { kind: 'closed' };
  }

  get #isClosed(): boolean {
    return this.#phase.kind === 'closed';
  }

  get #onAir(): OpenItem | undefined {
    return 'item' in this.#phase ? this.#phase.item : undefined;
  }

  #scheduleOf(spec: ScheduleSpec): Schedule {
    const { programs, fallbackProgram } = spec;
    const upcoming = new UpcomingItems(spec, this.#options.lengthOf);
    return { spec, upcoming, urls: new Set(urlsOf([...programs, fallbackProgram])) };
  }

  /**
   * Measures the current program first, since its plan depends on it; the others follow in the background.
   * @returns a signal that aborts with the next call, and when the channel is closed
   */
  async #measure({ programs, fallbackProgram }: ScheduleSpec): Promise<AbortSignal> {
    const { log } = this.#options;
    this.#measuring.abort();
    if (this.#isClosed) return this.#measuring.signal;
    const { signal } = (this.#measuring = new AbortController());
    const running = programAt(programs, this.#wall.at(this.#clock.monotonic()))?.program;
    const measure = (urls: readonly string[]): Promise<void> =>
      this.#options
        .measure(urls, signal)
        .catch((error: unknown) => log.error({ err: error }, 'the lengths of the media files could not be learned'));
    await measure(urlsOf([running, fallbackProgram]));
    void measure(urlsOf(programs));
    return signal;
  }

  #replan(): void {
    const onAir = this.#onAir;
    if (onAir === undefined) return;
    const planned = this.#schedule.upcoming.find(onAir, this.#wall.at(this.#clock.monotonic()));
    if (planned !== undefined) onAir.planned = planned;
    this.#phase = replanned(this.#phase, planned !== undefined);
  }

  #wake(): void {
    if (!this.#isClosed) this.#timer.wake();
  }

  #step(): void {
    if (this.#isClosed) return;
    const now = this.#clock.monotonic();
    // at most one step: a process that stood still may have missed input
    const passed = Math.min(this.#timer.begin(now), LOOK_MS);
    const jump = this.#wall.follow();
    if (jump !== 0) {
      this.#options.log.warn({ ms: Math.round(jump) }, 'the clock of the system was set: the channel follows it');
      this.#schedule.upcoming.forgive();
    }
    if (jump !== 0 || this.#isPlanOld) this.#replan();
    this.#isPlanOld = false;
    this.#trouble.step(this.#onAir === undefined, passed);
    let isChanged = true;
    for (let turn = 0; turn < TURNS && isChanged; turn++) isChanged = this.#turn(now, turn === 0 ? passed : 0);
    if (!this.#isClosed) this.#arm(now);
  }

  /** @returns whether an item has begun or ended */
  #turn(now: number, passed: number): boolean {
    this.#release(now);
    // a reader may have ended the stream
    if (this.#isClosed) return false;
    const isRetired = this.#retire(now, passed);
    this.#prepare(now);
    const isOpened = this.#switch(now);
    return isRetired || isOpened;
  }

  #release(now: number): void {
    const item = this.#onAir;
    if (item === undefined) return;
    const ends = this.#endOf(item);
    let isTaken = false;
    for (let unit = item.take(now + STEP_MS, ends); unit !== undefined; unit = item.take(now + STEP_MS, ends)) {
      this.#writer.write(unit);
      isTaken = true;
      if (this.#isClosed) return;
    }
    if (isTaken) item.source.taken();
  }

  /** Ends the playing item where it is over. @returns whether it did */
  #retire(now: number, passed: number): boolean {
    const item = this.#onAir;
    if (item === undefined) return false;
    this.#learn(item);
    const ends = this.#endOf(item);
    const fault = now < ends ? item.fault(passed, ends) : undefined;
    if (fault !== undefined) {
      this.#fail(item, fault, now);
      this.#hurry(now, item, false);
      return true;
    }
    if (!item.isFallback && item.isTroubled(ends)) this.#trouble.note(now);
    if (now < ends && !this.#isReplacedByNothing(now)) return false;
    item.close();
    this.#phase = ended(this.#phase, item);
    this.#hurry(now, item, true);
    return true;
  }

  #isReplacedByNothing(now: number): boolean {
    if (this.#phase.kind !== 'outdated' || this.#ready.fallback !== undefined) return false;
    return this.#schedule.upcoming.timetable.at(this.#wall.at(now)) === undefined;
  }

  /** Records the length of a file that was read to its end, where nothing else gave one. */
  #learn(item: OpenItem): void {
    const { url } = item.planned.item;
    const length = this.#options.lengthOf(url) === undefined ? item.length : undefined;
    if (length === undefined) return;
    this.#options.played(url, length);
    this.#replan();
  }

  /**
   * With nothing on the air, starts the ready fallback program where the stream ended, unless it is due then anyway.
   */
  #hurry(now: number, before: OpenItem, isDue: boolean): void {
    const { timetable } = this.#schedule.upcoming;
    const ready = this.#ready.fallback;
    if (ready === undefined && !before.isFallback) timetable.endFallback();
    if (ready === undefined || ready.isJoined) return;
    const begins = Math.max(this.#writer.end, now - CAUGHT_UP_MS);
    if (isDue && this.#wall.monotonic(ready.planned.begins) >= begins - CAUGHT_UP_MS) return;
    const planned = timetable.resumeFallback(ready.planned.item, Math.floor(this.#wall.at(begins)));
    if (planned !== undefined) ready.move(planned, this.#wall.monotonic(planned.begins));
  }

  /** Opens coming items, and closes those that will not play. */
  #prepare(now: number): void {
    const { spec, upcoming } = this.#schedule;
    const wall = this.#wall.at(now);
    const onAir = this.#phase.kind === 'playing' ? this.#onAir : undefined;
    const main = upcoming.nextOfPrograms(wall, onAir);
    const isTroubled = this.#trouble.isPresent(now, spec.stream.errorToleranceDurationMs);
    this.#ready.prepare(main, upcoming.nextOfFallback(wall, onAir, isTroubled), now);
    for (const item of this.#ready.both) {
      const objection = item?.objection(now);
      if (item !== undefined && objection !== undefined) this.#fail(item, objection, now);
    }
  }

  #open(planned: Planned, isFallback: boolean, isLoose: boolean, now: number): OpenItem {
    const toleranceMs = this.#schedule.spec.stream.errorToleranceDurationMs;
    return new OpenItem({
      ...{ planned, isFallback, isLoose, now, toleranceMs, begins: this.#wall.monotonic(planned.begins) },
      open: (position) => this.#options.open(planned.item, position, () => this.#wake()),
    });
  }

  /** Puts a ready item on the air when its time has come. @returns whether it did */
  #switch(now: number): boolean {
    const onAir = this.#onAir;
    const isOutdated = this.#phase.kind === 'outdated';
    for (const next of this.#ready.both) {
      if (next === undefined) continue;
      // the fallback program gives way to programs but does not interrupt them
      if (next.isFallback && onAir?.isFallback === false && !isOutdated) continue;
      const due = next.place(now, this.#writer, onAir !== undefined);
      if (due === undefined) continue;
      const isFree = onAir === undefined || isOutdated || next.isJoined || onAir.isSpent(this.#endOf(onAir));
      const begins = isFree ? due : this.#wall.monotonic(next.planned.begins);
      if (now < begins - STEP_MS) continue;
      this.#putOnAir(next);
      return true;
    }
    return false;
  }

  #putOnAir(next: OpenItem): void {
    this.#finish(next);
    if (this.#isClosed) return;
    this.#phase = begun(next);
    this.#trouble.forget();
    this.#ready.remove(next);
    this.#schedule.upcoming.played(next);
    const { program, item } = next.planned;
    this.#options.plays({ program: program.name, url: item.url });
    this.#writer.begin(next.tracks, next.offset, next.due ?? this.#clock.monotonic());
    next.start();
  }

  /** Ends the item on the air where the next one is first shown; its frames are decoded earlier than that. */
  #finish({ shownFrom = -Infinity }: OpenItem): void {
    const item = this.#onAir;
    if (item === undefined) return;
    const ends = Math.min(shownFrom, this.#endOf(item));
    for (let unit = item.take(shownFrom, ends); unit !== undefined; unit = item.take(shownFrom, ends)) {
      this.#writer.write(unit);
      if (this.#isClosed) return;
    }
    item.close();
  }

  #fail(failed: OpenItem, reason: string, now: number): void {
    failed.close();
    // skipping it would insert what followed it in the former schedule
    const isOutdated = this.#phase.kind === 'outdated' && this.#phase.item === failed;
    this.#phase = ended(this.#phase, failed);
    this.#ready.remove(failed);
    const { program, item } = failed.planned;
    // an item that is tried repeatedly is logged once
    const isKnown = !isOutdated && this.#schedule.upcoming.failed(failed, this.#wall.at(now));
    const fields = { program: program.name, url: item.url, reason };
    this.#options.log[isKnown ? 'debug' : 'warn'](fields, 'an item of the channel cannot be played');
  }

  /**
   * Monotonic. An item that is no longer scheduled plays until another can, the fallback program until a program can.
   */
  #endOf(item: OpenItem): number {
    const planned = this.#wall.monotonic(item.planned.ends ?? Infinity);
    const isOutdated = this.#phase.kind === 'outdated';
    if (item !== this.#onAir || !(isOutdated || item.isFallback)) return planned;
    const { main, fallback } = this.#ready;
    const next = main?.shownFrom ?? (isOutdated ? fallback?.shownFrom : undefined) ?? Infinity;
    return isOutdated ? next : Math.min(next, planned);
  }

  #arm(now: number): void {
    const item = this.#onAir;
    let at = now + LOOK_MS;
    if (item !== undefined) at = Math.min(at, item.due ?? now + item.checkAfterMs, this.#endOf(item));
    for (const next of this.#ready.both) {
      if (next === undefined || next.source.state === 'opening') continue;
      const begins = next.isJoined ? (next.joinsAt ?? now + SEARCH_MS) : this.#wall.monotonic(next.planned.begins);
      at = Math.min(at, Math.max(begins, now + STEP_MS));
    }
    this.#timer.arm(Math.max(at - now, STEP_MS));
  }
}

function urlsOf(programs: readonly (Pick<Program, 'items'> | undefined)[]): string[] {
  return programs.flatMap((program) => program?.items.map(({ url }) => url) ?? []);
}
