import { spliceInfo, type SpliceInfo } from '../containers/mpegts/splice-info.ts';
import { readCue } from '../core/cue.ts';
import type { DataCodec } from '../core/track.ts';
import type { Cut } from './cut.ts';
import { DateRange, dateOf, later, type DateRangeFacts, type Moment } from './date-range.ts';

/** Beyond this number, or so many bytes of sections, the oldest are forgotten. */
const MAX_RANGES = 64;
const MAX_SECTION_BYTES = 16 * 1024;
/** A segment may begin so much earlier than what it is to begin with. */
const HAIR_SECONDS = 0.01;
/** An `out` of the same event id after this time is another break, where the length of the first is not known. */
const REPEATED_SECONDS = 30;

const ATTRIBUTES = { out: 'SCTE35-OUT', in: 'SCTE35-IN', command: 'SCTE35-CMD' } as const;

/** A splice or a cue; events of other codecs tell of no breaks. */
interface BreakEvent {
  /** Unique in the stream. */
  readonly id: number;
  readonly codec: DataCodec;
  readonly data: Buffer;
  /** When it takes effect: media time in seconds. */
  readonly time: number;
}

/** What happens at the first segment that begins no earlier than `at`; nothing but that one begins there, if it can. */
interface Pending {
  readonly at: Moment;
  readonly range: DateRange;
  readonly what: 'cueOut' | 'cueIn' | 'end' | 'segment';
}

interface Told {
  readonly kind: SpliceInfo['kind'];
  readonly at: Moment;
  readonly range: DateRange;
}

/**
 * Ad breaks and other splices of one stream, as its media playlists tell them: EXT-X-DATERANGE (RFC 8216bis 4.4.5.1) and,
 * for cues, EXT-X-CUE-OUT and EXT-X-CUE-IN. All renditions tell the same, in front of the same segments.
 */
export class Breaks {
  #ranges: DateRange[] = [];
  #pending: readonly Pending[] = [];
  #cut: Cut | undefined;
  /** Changes when media times begin anew. */
  #epoch = 0;
  /** The break that a cue began last. */
  #cued: DateRange | undefined;
  /** By event id of SCTE 35: what was told last. */
  readonly #told = new Map<number, Told>();

  get empty(): boolean {
    return this.#ranges.length === 0;
  }

  /** Takes a splice or a cue that comes during the segments of the newest cut. */
  note(event: BreakEvent): void {
    const cut = this.#cut;
    if (cut === undefined) return;
    if (event.codec === 'SCTE35') this.#splice(event, cut);
    else if (event.codec === 'CUE') this.#cue(event, cut);
  }

  /**
   * All tracks begin a segment.
   * @param time presentation time of the cut, in seconds
   * @param anew media times have nothing to do with those before
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

  /** Whether a key frame shown at some time, in seconds, is to begin a segment. @param slack seconds that a frame lasts */
  isDue(time: number, slack: number): boolean {
    if (this.#pending.length === 0 || this.#cut === undefined) return false;
    return this.#due(this.#moment(time, this.#cut), slack).length > 0;
  }

  /**
   * From which presentation time on, in seconds on the newest cut's timeline, `isDue` is true; Infinity where nothing is
   * to come.
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

  /** The tags in front of a segment, each on its line. @param msn its number */
  at(msn: number): string {
    let text = '';
    for (const range of this.#ranges) text += range.at(msn);
    return text;
  }

  /**
   * The date ranges that are told in front of earlier segments and reach into the playlist.
   * @param msn number of the first segment that is shown
   * @param date wall clock where the playlist begins, in milliseconds since the epoch
   */
  before(msn: number, date: number): string {
    let text = '';
    for (const range of this.#ranges) {
      const { end } = range;
      if (end === undefined || dateOf(end) >= date) text += range.before(msn);
    }
    return text;
  }

  #splice({ id, time, data }: BreakEvent, cut: Cut): void {
    const info = spliceInfo(data);
    if (info === undefined) return;
    const { kind, eventId, duration, autoReturn } = info;
    const at = this.#moment(time, cut);
    const told = eventId === undefined ? undefined : this.#told.get(eventId);
    // senders repeat what is important
    if (told?.kind === kind && isRepeated(told, at)) {
      this.#told.set(eventId as number, { ...told, at });
      return;
    }
    const ends = kind === 'in' && told?.range.isOpen === true ? told.range : undefined;
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
    if (eventId !== undefined) this.#told.set(eventId, { kind, at, range });
    if (kind !== 'command') this.#await({ at, range, what: 'segment' });
    if (kind === 'out' && autoReturn && duration !== undefined)
      this.#await({ at: later(at, duration), range, what: 'end' });
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

  /** Keeps a range, under another id where its own has been in use. */
  #add(id: number, facts: DateRangeFacts): DateRange {
    const inUse = this.#ranges.some((range) => range.id === facts.id);
    const range = new DateRange(inUse ? { ...facts, id: `${facts.id}-${id}` } : facts);
    this.#ranges.push(range);
    while (this.#isTooMuch) this.#forget(this.#ranges.shift() as DateRange);
    return range;
  }

  get #isTooMuch(): boolean {
    const bytes = this.#ranges.reduce((sum, { sectionBytes }) => sum + sectionBytes, 0);
    return this.#ranges.length > MAX_RANGES || bytes > MAX_SECTION_BYTES;
  }

  #forget(gone: DateRange): void {
    this.#pending = this.#pending.filter(({ range }) => range !== gone);
    for (const [eventId, { range }] of this.#told) if (range === gone) this.#told.delete(eventId);
  }

  /** The end that was expected is not. */
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

/** Seconds that a segment may begin before what it is to begin with. */
function leastBefore(slack: number): number {
  return slack / 2 + HAIR_SECONDS;
}

function isRepeated({ at: before, range: { end, isOpen } }: Told, at: Moment): boolean {
  const until = Math.max(dateOf(later(before, REPEATED_SECONDS)), isOpen && end !== undefined ? dateOf(end) : 0);
  return dateOf(at) < until;
}

/** Seconds. */
function planned({ start, end }: DateRange): number {
  return Number(((end?.time ?? start.time) - start.time).toFixed(3));
}
