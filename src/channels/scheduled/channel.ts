import type { Packet } from '../../core/packet.ts';
import type { Logger } from '../../log/log.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';
import { ChannelWriter } from './channel-writer.ts';
import { SteadyWall, type ChannelClock } from './clock.ts';
import type { ItemSource } from './item-source.ts';
import { isSameButMoved, isSameEntry, Lineup } from './lineup.ts';
import { Play } from './play.ts';
import { programAt, type LengthOf, type Planned } from './plan.ts';
import type { ScheduleReport } from './report.ts';
import type { Item, Program, ScheduleSpec } from './spec.ts';

/** Longest and shortest pause between two steps. */
const LOOK_MS = 250;
const STEP_MS = 4;
/** Interval between searches for a join position. */
const SEARCH_MS = 20;
/** Most turns of one step: consequences of one turn are handled in the next one at once. */
const TURNS = 8;
/** The fallback program stays ready for this long after trouble of the item on the air. */
const READY_MS = 10_000;
/** After silence of the stream, the fallback program begins no further in the past than this. */
const CAUGHT_UP_MS = 500;

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
  readonly #wall: SteadyWall;
  readonly #writer: ChannelWriter;
  #spec: ScheduleSpec;
  #lineup: Lineup;
  /** URLs that the schedule may play. */
  #urls: ReadonlySet<string>;
  #onAir: Play | undefined;
  /** The playing item is no longer in the changed schedule. */
  #isOutdated = false;
  /** File lengths differ from those of the plan. */
  #isPlanOld = false;
  /** Monotonic: the item on the air counts as troubled until then. */
  #troubledUntil = -Infinity;
  /** Time with nothing on the air, without pauses of the process. */
  #silentMs = 0;
  #measuring = new AbortController();
  /** Next item of the programs, and of the fallback program. */
  #main: Play | undefined;
  #fallback: Play | undefined;
  #lookedAt: number;
  #cancel: (() => void) | undefined;
  #isWoken = false;
  #closed = false;

  constructor(options: ChannelOptions) {
    const { spec, sink, clock, lengthOf } = options;
    this.#options = options;
    this.#clock = clock;
    this.#wall = new SteadyWall(clock);
    this.#writer = new ChannelWriter(sink);
    this.#spec = spec;
    this.#lineup = new Lineup(spec, lengthOf);
    this.#urls = allUrlsOf(spec);
    this.#lookedAt = clock.monotonic();
  }

  /** Starts to play, once the lengths of the items that it depends on are known as far as possible. */
  async start(): Promise<void> {
    await this.#measure(this.#spec);
    if (!this.#closed) this.#step();
  }

  /** Replaces the schedule. An item that both schedules have at this time is not interrupted. */
  async change(spec: ScheduleSpec): Promise<void> {
    this.#spec = spec;
    await this.#measure(spec);
    if (this.#closed || spec !== this.#spec) return;
    this.#lineup = new Lineup(spec, this.#options.lengthOf);
    this.#urls = allUrlsOf(spec);
    this.#replan();
    this.#step();
  }

  /** Replans after the length of a file became known or changed. */
  replan(url: string): void {
    if (!this.#urls.has(url)) return;
    this.#isPlanOld = true;
    this.#wake();
  }

  report(): ScheduleReport {
    const now = this.#clock.monotonic();
    const wall = this.#wall.at(now);
    const play = this.#onAir;
    const planned = play?.planned ?? this.#lineup.timetable.at(wall);
    const fallback = play?.isFallback === true;
    if (planned === undefined) return { fallback };
    const { name, repeat, scheduled } = this.#lineup.timetable.definition(planned.program);
    const ends = fallback ? undefined : this.#lineup.timetable.after(wall);
    const program = { name, scheduled: fallback ? 0 : scheduled, repeat, ...(ends !== undefined && { ends }) };
    if (play === undefined) return { program, fallback };
    const { url, start, duration } = planned.item;
    return { program, item: { url, start, duration, position: play.position(now) }, fallback };
  }

  /**
   * Scheduled time of a packet that is being written to the sink, in milliseconds since the epoch. It follows from
   * the item and the position in it, so for files it is the same on every node.
   */
  scheduledAt(packet: Packet): number {
    const shown = this.#writer.shownAt(packet);
    const play = this.#onAir;
    return play === undefined ? this.#wall.at(shown) : play.planned.begins + play.position(shown);
  }

  /** Stops writing. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#measuring.abort();
    this.#cancel?.();
    for (const play of [this.#onAir, this.#main, this.#fallback]) play?.close();
    this.#onAir = this.#main = this.#fallback = undefined;
  }

  /** Measures the current program first, since its plan depends on it; the others follow in the background. */
  async #measure({ programs, fallbackProgram }: ScheduleSpec): Promise<void> {
    const { log } = this.#options;
    this.#measuring.abort();
    const { signal } = (this.#measuring = new AbortController());
    if (this.#closed) return;
    const running = programAt(programs, this.#wall.at(this.#clock.monotonic()))?.program;
    const measure = (urls: readonly string[]): Promise<void> =>
      this.#options
        .measure(urls, signal)
        .catch((error: unknown) => log.error({ err: error }, 'the lengths of the media files could not be learned'));
    await measure(urlsOf([running, fallbackProgram]));
    void measure(urlsOf(programs));
  }

  #replan(): void {
    const play = this.#onAir;
    if (play === undefined) return;
    const { timetable } = this.#lineup;
    const { item, begins } = play.planned;
    if (play.isFallback) {
      const planned = timetable.resumeFallback(item, begins);
      if (planned !== undefined) play.planned = planned;
      this.#isOutdated = planned === undefined;
      return;
    }
    const planned = timetable.at(this.#wall.at(this.#clock.monotonic()));
    const isSame = planned !== undefined && isSameButMoved(planned, play.planned);
    if (isSame) play.planned = planned;
    this.#isOutdated = !isSame;
  }

  #wake(): void {
    if (this.#isWoken || this.#closed) return;
    this.#isWoken = true;
    this.#cancel?.();
    this.#cancel = this.#clock.after(0, () => this.#step());
  }

  #step(): void {
    if (this.#closed) return;
    this.#isWoken = false;
    this.#cancel?.();
    const now = this.#clock.monotonic();
    const jump = this.#wall.follow();
    if (jump !== 0) {
      this.#options.log.warn({ ms: Math.round(jump) }, 'the clock of the system was set: the channel follows it');
      this.#lineup.forgive();
    }
    if (jump !== 0 || this.#isPlanOld) this.#replan();
    this.#isPlanOld = false;
    // at most one step: a process that stood still may have missed input
    const passed = Math.min(now - this.#lookedAt, LOOK_MS);
    this.#lookedAt = now;
    this.#silentMs = this.#onAir === undefined ? this.#silentMs + passed : 0;
    for (let turn = 0; turn < TURNS; turn++) {
      this.#release(now);
      const isRetired = this.#retire(now, turn === 0 ? passed : 0);
      this.#prepare(now);
      const isOpened = this.#switch(now);
      if (!isRetired && !isOpened) break;
    }
    this.#arm(now);
  }

  #release(now: number): void {
    const play = this.#onAir;
    if (play === undefined) return;
    const ends = this.#endOf(play);
    let isTaken = false;
    for (let unit = play.take(now + STEP_MS, ends); unit !== undefined; unit = play.take(now + STEP_MS, ends)) {
      this.#writer.write(unit);
      isTaken = true;
      // a reader may have ended the stream
      if (this.#closed) return;
    }
    if (isTaken) play.source.taken();
  }

  /** Ends the playing item where it is over. @returns whether it did */
  #retire(now: number, passed: number): boolean {
    const play = this.#onAir;
    if (play === undefined) return false;
    this.#learn(play);
    const ends = this.#endOf(play);
    const fault = now < ends ? play.fault(passed, ends) : undefined;
    if (fault !== undefined) {
      this.#fail(play, fault, now);
      this.#hurry(now, play, false);
      return true;
    }
    if (!play.isFallback && play.isTroubled(ends)) this.#troubledUntil = now + READY_MS;
    const hasNothing = this.#isOutdated && this.#entryAt(now) === undefined && this.#fallback === undefined;
    if (now < ends && !hasNothing) return false;
    play.close();
    this.#onAir = undefined;
    this.#isOutdated = false;
    this.#hurry(now, play, true);
    return true;
  }

  /** Records the length of a file that was read to its end, where nothing else gave one. */
  #learn(play: Play): void {
    const { url } = play.planned.item;
    const length = this.#options.lengthOf(url) === undefined ? play.length : undefined;
    if (length === undefined) return;
    this.#options.played(url, length);
    this.#replan();
  }

  /**
   * With nothing on the air, starts the ready fallback program where the stream ended, unless it is due then anyway.
   */
  #hurry(now: number, before: Play, isDue: boolean): void {
    const ready = this.#fallback;
    if (ready === undefined && !before.isFallback) this.#lineup.timetable.endFallback();
    if (ready === undefined || ready.isJoined) return;
    const begins = Math.max(this.#writer.end, now - CAUGHT_UP_MS);
    if (isDue && this.#wall.monotonic(ready.planned.begins) >= begins - CAUGHT_UP_MS) return;
    const at = Math.floor(this.#wall.at(begins));
    const planned = this.#lineup.timetable.resumeFallback(ready.planned.item, at);
    if (planned !== undefined) ready.move(planned, this.#wall.monotonic(planned.begins));
  }

  /** Opens coming items, and closes those that will not play. */
  #prepare(now: number): void {
    const wall = this.#wall.at(now);
    const onAir = this.#isOutdated ? undefined : this.#onAir;
    const main = this.#lineup.nextOfPrograms(wall, onAir);
    if (!isSamePlay(this.#main, main)) {
      this.#main?.close();
      this.#main = main && this.#openPlay(main, false, now);
    } else if (this.#main?.isStuck(now) === true) {
      this.#main.close();
      this.#main = main && this.#openPlay(main, false, now, true);
    }
    // a changed schedule may have given it another end
    if (this.#main !== undefined && main !== undefined) this.#main.planned = main;
    const isSilent = this.#silentMs >= this.#spec.stream.errorToleranceDurationMs;
    const fallback = this.#lineup.nextOfFallback(wall, onAir, now < this.#troubledUntil || isSilent);
    if (!isSamePlay(this.#fallback, fallback)) {
      this.#fallback?.close();
      this.#fallback = fallback && this.#openPlay(fallback, true, now);
    }
    for (const play of [this.#main, this.#fallback]) {
      const objection = play?.objection(now);
      if (play !== undefined && objection !== undefined) this.#fail(play, objection, now);
    }
  }

  #entryAt(now: number): Planned | undefined {
    return this.#lineup.timetable.at(this.#wall.at(now));
  }

  #openPlay(planned: Planned, isFallback: boolean, now: number, isLoose = false): Play {
    return new Play({
      ...{ planned, isFallback, now, isLoose, begins: this.#wall.monotonic(planned.begins) },
      toleranceMs: this.#spec.stream.errorToleranceDurationMs,
      open: (position) => this.#options.open(planned.item, position, () => this.#wake()),
    });
  }

  /** Puts a ready item on the air when its time has come. @returns whether it did */
  #switch(now: number): boolean {
    const play = this.#onAir;
    for (const next of [this.#main, this.#fallback]) {
      if (next === undefined) continue;
      // the fallback program gives way to programs but does not interrupt them
      if (next.isFallback && play !== undefined && !play.isFallback && !this.#isOutdated) continue;
      const due = next.place(now, this.#writer, play !== undefined);
      if (due === undefined) continue;
      const isFree = play === undefined || this.#isOutdated || next.isJoined || play.isSpent(this.#endOf(play));
      const begins = isFree ? due : this.#wall.monotonic(next.planned.begins);
      if (now < begins - STEP_MS) continue;
      this.#putOnAir(next);
      return true;
    }
    return false;
  }

  #putOnAir(play: Play): void {
    this.#finish(play);
    if (this.#closed) return;
    this.#onAir = play;
    this.#isOutdated = false;
    this.#troubledUntil = -Infinity;
    if (play === this.#main) this.#main = undefined;
    else this.#fallback = undefined;
    this.#lineup.played(play);
    const { program, item } = play.planned;
    this.#options.plays({ program: program.name, url: item.url });
    this.#writer.begin(play.tracks, play.offset, play.due ?? this.#clock.monotonic());
    play.start();
  }

  /** Ends the item on the air where the next one is first shown; its frames are decoded earlier than that. */
  #finish({ shownFrom = -Infinity }: Play): void {
    const play = this.#onAir;
    if (play === undefined) return;
    const ends = Math.min(shownFrom, this.#endOf(play));
    for (let unit = play.take(shownFrom, ends); unit !== undefined; unit = play.take(shownFrom, ends)) {
      this.#writer.write(unit);
      if (this.#closed) return;
    }
    play.close();
  }

  #fail(play: Play, reason: string, now: number): void {
    play.close();
    if (play === this.#onAir) this.#onAir = undefined;
    if (play === this.#main) this.#main = undefined;
    if (play === this.#fallback) this.#fallback = undefined;
    const { program, item } = play.planned;
    // an item that is tried repeatedly is logged once
    const isKnown = this.#lineup.failed(play, this.#wall.at(now));
    const fields = { program: program.name, url: item.url, reason };
    this.#options.log[isKnown ? 'debug' : 'warn'](fields, 'an item of the channel cannot be played');
  }

  /**
   * Monotonic. An item that is no longer scheduled plays until another can, the fallback program until a program can.
   */
  #endOf(play: Play): number {
    const { ends = Infinity } = play.planned;
    if (play !== this.#onAir || !(this.#isOutdated || play.isFallback)) return this.#wall.monotonic(ends);
    const next = this.#main?.shownFrom ?? (this.#isOutdated ? this.#fallback?.shownFrom : undefined) ?? Infinity;
    return this.#isOutdated ? next : Math.min(next, this.#wall.monotonic(ends));
  }

  #arm(now: number): void {
    const play = this.#onAir;
    let at = now + LOOK_MS;
    if (play !== undefined) at = Math.min(at, play.due ?? now + play.checkAfterMs, this.#endOf(play));
    for (const next of [this.#main, this.#fallback]) {
      if (next === undefined || next.source.state === 'opening') continue;
      const begins = next.isJoined ? (next.joinsAt ?? now + SEARCH_MS) : this.#wall.monotonic(next.planned.begins);
      at = Math.min(at, Math.max(begins, now + STEP_MS));
    }
    this.#cancel = this.#clock.after(Math.max(at - now, STEP_MS), () => this.#step());
  }
}

function urlsOf(programs: readonly (Pick<Program, 'items'> | undefined)[]): string[] {
  return programs.flatMap((program) => program?.items.map(({ url }) => url) ?? []);
}

function allUrlsOf({ programs, fallbackProgram }: ScheduleSpec): ReadonlySet<string> {
  return new Set(urlsOf([...programs, fallbackProgram]));
}

function isSamePlay(play: Play | undefined, planned: Planned | undefined): boolean {
  return play === undefined || planned === undefined ? play === planned : isSameEntry(play.planned, planned);
}
