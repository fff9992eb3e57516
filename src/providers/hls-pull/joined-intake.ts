import { isMedia, type Track } from '../../core/track.ts';
import { Intake } from '../intake/intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { Announced } from '../intake/start-gate.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import { CLOCK, PeriodClock, type PlaylistClock } from './period-clock.ts';

/** Wait for media of the other playlists once one of them has begun. */
const START_MS = 5000;
/** Bytes that are held back until then. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Audio that begins further from the video is of another clock. */
const MAX_APART = 600 * CLOCK.timebase.den;

export interface JoinedIntakeOptions {
  readonly sink: TrackSink;
  /** Whether times are those of the source; else they begin with 0. */
  readonly keepsTimes: boolean;
  /** Wait for video that is joined between two key frames, as `IntakeOptions` has it. */
  readonly videoWaitMs?: number;
  /** Called once, when nothing playable comes. */
  readonly onFailure: (reason: string) => void;
}

/** Units of one playlist, on their way into the stream. */
export interface Feed {
  /** Period of the units that follow: those of the same name have one clock, in whichever playlist they are. */
  period: string;
  /** Tracks in their latest form. */
  readonly tracks: () => readonly Track[];
  readonly clock: PlaylistClock;
  announced: { readonly of: Announced; readonly ids: ReadonlySet<number> } | undefined;
  /** Nothing follows. */
  isOver: boolean;
  /** Has brought something before the start; and something from where the first one begins. */
  hasBegun: boolean;
  hasReached: boolean;
  /** Its units are part of the stream: those before the beginning of the video are not. */
  hasJoined: boolean;
  /** Video frames are left out up to a key frame. */
  waits: boolean;
}

interface Held {
  readonly feed: Feed;
  readonly period: string;
  readonly unit: MediaUnit;
}

/**
 * Takes the units of the playlists of one stream, and starts it when all of them have come to where the first one begins: what is before
 * that is left out. A playlist that is late for longer than some seconds joins later.
 */
export class JoinedIntake {
  readonly #writer: TrackWriter;
  readonly #intake: Intake;
  readonly #clock: PeriodClock;
  readonly #feeds: Feed[] = [];
  /** Units before the start; undefined after it. */
  #held: Held[] | undefined = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #changed = Promise.withResolvers<void>();
  /** Where the first playlist begins. */
  #first: Held | undefined;
  #closed = false;

  constructor({ sink, keepsTimes, videoWaitMs, onFailure }: JoinedIntakeOptions) {
    this.#clock = new PeriodClock(!keepsTimes);
    this.#writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: this.#clock,
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer: this.#writer,
      silenceMs: 0,
      ...(videoWaitMs !== undefined && { videoWaitMs }),
      tracks: () => this.#feeds.flatMap(({ tracks }) => tracks()),
      onFailure,
    });
  }

  /** Adds a playlist, before any of them brings something. The first one has the video. */
  feed(tracks: () => readonly Track[]): Feed {
    const feed: Feed = {
      period: '',
      tracks,
      clock: this.#clock.playlist(),
      announced: undefined,
      isOver: false,
      hasBegun: false,
      hasReached: false,
      hasJoined: this.#feeds.length === 0,
      waits: false,
    };
    this.#feeds.push(feed);
    return feed;
  }

  /** Notes the tracks that a playlist has. @param ids of all of them */
  announce(feed: Feed, of: Announced, ids: ReadonlySet<number>): void {
    feed.announced = { of, ids };
    if (this.#held === undefined) this.#announceAll();
  }

  unit(feed: Feed, unit: MediaUnit): void {
    if (this.#closed) return;
    if (this.#held === undefined) return this.#pass(feed, feed.period, unit);
    const held = { feed, period: feed.period, unit };
    this.#held.push(held);
    this.#bytes += unit.data.length;
    this.#timer ??= setTimeout(() => this.#start(), START_MS);
    feed.hasBegun = true;
    if (this.#first !== undefined) feed.hasReached ||= isFrom(this.#first, held);
    else if (feed === this.#feeds[0] && isMedia(unit.track)) this.#begin(held);
    if (this.#isReady || this.#bytes > MAX_HELD_BYTES) this.#start();
  }

  /** Nothing follows of a playlist. */
  end(feed: Feed): void {
    feed.isOver = true;
    if (this.#isReady) this.#start();
  }

  /** Waits until more of a playlist is wanted: it waits for the others before the start. */
  async turn(feed: Feed): Promise<void> {
    while (this.#held !== undefined && !this.#closed && this.#isAhead(feed)) await this.#changed.promise;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#held = this.#held && [];
    this.#intake.close();
    this.#change();
  }

  #begin(first: Held): void {
    this.#first = first;
    for (const held of this.#held ?? []) held.feed.hasReached ||= isFrom(first, held);
    this.#change();
  }

  get #isReady(): boolean {
    return this.#first !== undefined && this.#feeds.every(({ isOver, hasReached }) => isOver || hasReached);
  }

  /** Whether a playlist has come to where the first one begins; while that is not known, whether it has begun. */
  #isAhead({ hasBegun, hasReached }: Feed): boolean {
    return this.#first === undefined ? hasBegun : hasReached;
  }

  #start(): void {
    const held = this.#held ?? [];
    const first = this.#first;
    this.#held = undefined;
    clearTimeout(this.#timer);
    this.#announceAll();
    // the first playlist gives the clock of its period
    for (const each of held) if (first === undefined || each.feed === first.feed) this.#passHeld(each);
    if (first !== undefined) for (const each of held) if (each.feed !== first.feed) this.#passHeld(each);
    this.#change();
  }

  #passHeld({ feed, period, unit }: Held): void {
    this.#pass(feed, period, unit);
  }

  #pass(feed: Feed, period: string, unit: MediaUnit): void {
    feed.hasJoined ||= this.#joins(feed, period, unit);
    if (!feed.hasJoined || this.#closed) return;
    const { track } = unit;
    if (!isMedia(track)) return this.#intake.unit({ ...unit, time: feed.clock.placeEvent(period, unit.time) });
    const time = feed.clock.place(track.id, period, unit.time);
    if (time === undefined) feed.waits ||= track.type === 'video';
    if (time === undefined || (feed.waits && track.type === 'video' && unit.key !== true)) return;
    if (track.type === 'video') feed.waits = false;
    this.#intake.unit({ ...unit, time });
  }

  /** Whether what a playlist brings is part of the stream from this unit on. */
  #joins(feed: Feed, period: string, unit: MediaUnit): boolean {
    const first = this.#first;
    if (first === undefined) return true;
    if (period !== first.period) return feed.clock.knows(period);
    const distance = ticksFrom(first.unit.time, unit.time);
    if (Math.abs(distance) > MAX_APART) {
      this.#intake.fail('the times of its audio are others than those of its video');
      return false;
    }
    return distance >= 0;
  }

  #announceAll(): void {
    const announced = this.#feeds.flatMap((feed) => feed.announced ?? []);
    if (announced.length === 0) return;
    const ids = new Set(announced.flatMap((one) => [...one.ids]));
    if (this.#intake.live && ids.size > 0) this.#writer.keep(ids);
    const all = (kind: keyof Announced): number[] => announced.flatMap(({ of }) => of[kind]);
    this.#intake.announce({ video: all('video'), audio: all('audio') });
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function isFrom(first: Held, { period, unit }: Held): boolean {
  return period === first.period && ticksFrom(first.unit.time, unit.time) >= 0;
}

/** Ticks from a time of MPEG-TS to another, both of which wrap. */
function ticksFrom(from: number, to: number): number {
  const range = 2 ** 33;
  const distance = (((to - from) % range) + range) % range;
  return distance >= range / 2 ? distance - range : distance;
}
