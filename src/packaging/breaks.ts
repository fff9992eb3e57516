import { spliceInfo, type SpliceInfo } from '../containers/mpegts/splice-info.ts';
import { readCue } from '../core/cue.ts';
import { readInterstitial, type Interstitial } from '../core/interstitial.ts';
import type { DataCodec } from '../core/track.ts';
import type { Cut } from './cut.ts';
import { DateRange, dateOf, later, type DateRangeFacts, type Moment } from './date-range.ts';
import { interstitialAttributes, type SplicedBreak } from './interstitials.ts';
import type { Segment } from './segment.ts';

/** Beyond this number, or MAX_BYTES in all, the oldest ranges are forgotten. */
const MAX_RANGES = 64;
const MAX_BYTES = 32 * 1024;
/** Seconds by which a segment may begin before its break. */
const EPSILON_SECONDS = 0.01;
/** An `out` with the same event id is another break after this time, if the first has no known length. */
const REPEATED_SECONDS = 30;

const ATTRIBUTES = { out: 'SCTE35-OUT', in: 'SCTE35-IN', command: 'SCTE35-CMD' } as const;

/** A splice, a cue or an interstitial; events of other codecs are ignored. */
interface BreakEvent {
  /** Unique in the stream. */
  readonly id: number;
  readonly codec: DataCodec;
  readonly data: Buffer;
  /** Media time at which it takes effect, in seconds. */
  readonly time: number;
}

/** An action for the first segment that begins at `at` or later. A segment is cut there if a key frame allows. */
interface Pending {
  readonly at: Moment;
  readonly range: DateRange;
  readonly what: 'cueOut' | 'cueIn' | 'end' | 'segment';
}

interface LastSplice {
  readonly kind: SpliceInfo['kind'];
  readonly at: Moment;
  readonly range: DateRange;
}

/** Facts about a stream that its breaks depend on. */
export interface BreaksOptions {
  /** Makes the interstitial of a break that a splice begins; undefined for none. */
  readonly interstitialFor?: ((spliced: SplicedBreak) => Interstitial | undefined) | undefined;
  /** Whether the past of the stream has a date range with an id, which then cannot be that of another. */
  readonly wasListed?: ((id: string) => boolean) | undefined;
}

/**
 * Ad breaks, interstitials and other splices of one stream, as tags of its media playlists: EXT-X-DATERANGE (RFC 8216bis 4.4.5.1) and,
 * for cues, EXT-X-CUE-OUT and EXT-X-CUE-IN. All renditions have the same tags, in front of the same segments.
 */
export class Breaks {
  #ranges: DateRange[] = [];
  #pending: readonly Pending[] = [];
  #cut: Cut | undefined;
  #epoch = 0;
  #cued: DateRange | undefined;
  /** By SCTE 35 event id. */
  readonly #lastSplices = new Map<number, LastSplice>();
  /** The newest interstitials with an id of their sender, by it. */
  readonly #sent = new Map<string, DateRange>();
  /** The newest splice that an interstitial was made for. */
  #replaced: DateRange | undefined;
  readonly #options: BreaksOptions;

  constructor(options: BreaksOptions = {}) {
    this.#options = options;
  }

  get empty(): boolean {
    return this.#ranges.length === 0;
  }

  /** Processes a splice, a cue or an interstitial that arrives during the segments of the newest cut. */
  note(event: BreakEvent): void {
    const cut = this.#cut;
    if (cut === undefined) return;
    if (event.codec === 'SCTE35') this.#splice(event, cut);
    else if (event.codec === 'CUE') this.#cue(event, cut);
    else if (event.codec === 'INTERSTITIAL') this.#interstitial(event, cut);
  }

  /**
   * Begins a segment on all tracks, and performs the actions that are due.
   * @param time presentation time of the cut, in seconds
   * @param anew whether a new timeline begins
   */
  cut(cut: Cut, time: number, anew: boolean): void {
    if (anew) this.#epoch++;
    this.#cut = cut;
    if (this.#pending.length === 0) return;
    const due = this.#due(this.#moment(time, cut), cut.slack);
    if (due.length === 0) return;
    this.#pending = this.#pending.filter((one) => !due.includes(one));
    for (const { at, range, what } of due) {
      if (what === 'cueOut') range.mark(cut.msn, `#EXT-X-CUE-OUT:DURATION=${planned(range)}`);
      if (what === 'cueIn') range.mark(cut.msn, '#EXT-X-CUE-IN');
      if (what === 'cueIn' || what === 'end') range.finish(cut.msn, at);
    }
  }

  /** Whether a key frame shown at `time`, in seconds, is to begin a segment. @param slack seconds of a frame */
  isDue(time: number, slack: number): boolean {
    if (this.#pending.length === 0 || this.#cut === undefined) return false;
    return this.#due(this.#moment(time, this.#cut), slack).length > 0;
  }

  /**
   * Earliest presentation time for which `isDue` is true, in seconds on the newest cut's timeline; Infinity if nothing is
   * pending.
   */
  dueAt(slack: number): number {
    const cut = this.#cut;
    if (cut === undefined) return Infinity;
    let due = Infinity;
    for (const { at } of this.#pending) {
      const time = at.epoch === this.#epoch ? at.time : (dateOf(at) - cut.wallTime.at(0)) / 1000;
      due = Math.min(due, time);
    }
    return due - leastBefore(slack);
  }

  /** Tags in front of a segment, each on a line. @param msn media sequence number of the segment */
  at(msn: number): string {
    let text = '';
    for (const range of this.#ranges) text += range.at(msn);
    return text;
  }

  /**
   * Tags of date ranges from earlier segments that reach into the playlist, and from those that a delta update leaves out.
   * @param first first segment of the playlist
   * @param shown media sequence number of the first segment shown
   */
  before({ msn, wallClock }: Pick<Segment, 'msn' | 'wallClock'>, shown = msn): string {
    let text = '';
    for (const range of this.#ranges) {
      const { end } = range;
      const stays = end === undefined || dateOf(end) >= wallClock;
      text += range.before(shown, stays ? undefined : msn);
    }
    return text;
  }

  #splice({ id, time, data }: BreakEvent, cut: Cut): void {
    const info = spliceInfo(data);
    if (info === undefined) return;
    const { kind, eventId, duration, autoReturn } = info;
    const at = this.#moment(time, cut);
    const last = eventId === undefined ? undefined : this.#lastSplices.get(eventId);
    // senders repeat important splices
    if (last?.kind === kind && isRepeated(last, at)) {
      this.#lastSplices.set(eventId as number, { ...last, at });
      return;
    }
    const ends = kind === 'in' && last?.range.isOpen === true ? last.range : undefined;
    const range =
      ends ??
      this.#add(id, {
        id: String(eventId ?? id),
        start: at,
        planned: kind === 'out' ? duration : undefined,
        splice: { attribute: ATTRIBUTES[kind], section: data },
        msn: cut.msn,
      });
    if (ends !== undefined) {
      this.#settle(ends);
      ends.finish(cut.msn, at, data);
    } else if (kind !== 'out') {
      range.close();
    }
    if (eventId !== undefined) this.#lastSplices.set(eventId, { kind, at, range });
    if (kind !== 'command') this.#await({ at, range, what: 'segment' });
    if (kind === 'out' && autoReturn && duration !== undefined)
      this.#await({ at: later(at, duration), range, what: 'end' });
    // signals are nested: a break, its opportunities, each advertisement
    if (kind !== 'out' || (this.#replaced !== undefined && !isOver(this.#replaced, at))) return;
    const durationMs = duration === undefined ? undefined : Math.round(duration * 1000);
    const shown = this.#options.interstitialFor?.({ eventId, durationMs, date: dateOf(at) });
    if (shown === undefined) return;
    this.#show(id, shown, at, cut.msn);
    this.#replaced = range;
  }

  #interstitial({ id, time, data }: BreakEvent, cut: Cut): void {
    const interstitial = readInterstitial(data);
    if (interstitial === undefined) return;
    const at = this.#moment(time + (interstitial.startOffset ?? 0) / 1000, cut);
    this.#show(id, interstitial, at, cut.msn);
  }

  /** Ignores repeats of one that is not over: senders repeat what is important. */
  #show(event: number, interstitial: Interstitial, start: Moment, msn: number): void {
    const { id: own } = interstitial;
    const before = own === undefined ? undefined : this.#sent.get(own);
    if (before !== undefined && (!isOver(before, start) || isSoonAfter(before, start))) return;
    const range = this.#add(event, {
      id: `interstitial-${own ?? event}`,
      start,
      duration: (interstitial.duration ?? 0) / 1000,
      attributes: interstitialAttributes(interstitial),
      msn,
    });
    if (own !== undefined) this.#sent.set(own, range);
    this.#await({ at: start, range, what: 'segment' });
  }

  #cue({ id, time, data }: BreakEvent, cut: Cut): void {
    const cue = readCue(data);
    if (cue === undefined) return;
    const at = this.#moment(time, cut);
    const open = this.#cued;
    if (open?.isOpen === true) {
      this.#settle(open);
      this.#await({ at, range: open, what: 'cueIn' });
    }
    if (cue.cueType === 'in') return;
    const seconds = (cue.duration ?? 0) / 1000;
    const range = this.#add(id, { id: `cue-${id}`, start: at, planned: seconds, msn: cut.msn });
    this.#cued = range;
    this.#await({ at, range, what: 'cueOut' });
    this.#await({ at: later(at, seconds), range, what: 'cueIn' });
  }

  /** Keeps a range, under another id if its own is in use. */
  #add(id: number, facts: DateRangeFacts): DateRange {
    const inUse = this.#ranges.some((range) => range.id === facts.id) || this.#options.wasListed?.(facts.id) === true;
    const range = new DateRange(inUse ? { ...facts, id: `${facts.id}-${id}` } : facts);
    this.#ranges.push(range);
    while (this.#isTooMuch) this.#forget(this.#leastNeeded(range));
    return range;
  }

  get #isTooMuch(): boolean {
    const bytes = this.#ranges.reduce((sum, range) => sum + range.bytes, 0);
    return this.#ranges.length > MAX_RANGES || bytes > MAX_BYTES;
  }

  /** The oldest of the ranges that are over, or else of those that have an end, or of all. */
  #leastNeeded(newest: DateRange): DateRange {
    const [oldest = newest, ...more] = this.#ranges.filter((range) => range !== newest);
    const ended = [oldest, ...more].filter(({ isOpen }) => !isOpen);
    return ended.find((range) => isOver(range, newest.start)) ?? ended[0] ?? oldest;
  }

  #forget(gone: DateRange): void {
    this.#ranges = this.#ranges.filter((range) => range !== gone);
    for (const [id, range] of this.#sent) if (range === gone) this.#sent.delete(id);
    this.#pending = this.#pending.filter(({ range }) => range !== gone);
    for (const [eventId, { range }] of this.#lastSplices) if (range === gone) this.#lastSplices.delete(eventId);
  }

  #settle(ended: DateRange): void {
    this.#pending = this.#pending.filter(({ range, what }) => range !== ended || what === 'cueOut');
  }

  #await(pending: Pending): void {
    this.#pending = [...this.#pending, pending];
  }

  #due(now: Moment, slack: number): readonly Pending[] {
    const least = leastBefore(slack);
    return this.#pending.filter(({ at }) =>
      at.epoch === now.epoch ? at.time <= now.time + least : dateOf(at) <= dateOf(now) + least * 1000,
    );
  }

  #moment(time: number, { wallTime }: Cut): Moment {
    return { time, epoch: this.#epoch, clock: wallTime };
  }
}

function leastBefore(slack: number): number {
  return slack / 2 + EPSILON_SECONDS;
}

/** Whether a range has ended at a time; one of unknown end lasts for a while. */
function isOver({ start, end = later(start, REPEATED_SECONDS) }: DateRange, at: Moment): boolean {
  return dateOf(at) >= dateOf(end);
}

function isSoonAfter(before: DateRange, at: Moment): boolean {
  return dateOf(at) < dateOf(later(before.start, REPEATED_SECONDS));
}

function isRepeated({ at: before, range: { end, isOpen } }: LastSplice, at: Moment): boolean {
  const until = Math.max(dateOf(later(before, REPEATED_SECONDS)), isOpen && end !== undefined ? dateOf(end) : 0);
  return dateOf(at) < until;
}

/** Seconds. */
function planned({ start, end }: DateRange): number {
  return Number(((end?.time ?? start.time) - start.time).toFixed(3));
}
