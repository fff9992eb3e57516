import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import type { Cut } from './cut.ts';
import { needsReset } from './initialization.ts';
import { PartBuilder } from './part-builder.ts';
import { WaitingEvents, type TimedEvent } from './part-events.ts';
import { PartFit, type PartLimits } from './part-fit.ts';
import type { PartForm } from './part-form.ts';
import { Segment } from './segment.ts';
import type { TrackFormat } from './track-format.ts';
import type { Window } from './window.ts';

/** Seconds within which video frames may be apart in one part; a longer gap begins another. */
const GAP_SECONDS = 10;
const NO_EVENTS: readonly TimedEvent[] = [];

/** Writes the frames of one track to parts, and those to the segments of its window. */
export class SegmentWriter<Data> {
  readonly #window: Window<Data>;
  readonly #format: TrackFormat;
  readonly #builder: PartBuilder<Data>;
  readonly #fit: PartFit;
  /** Whether a part may end on a prediction. */
  readonly #early: boolean;
  readonly #events = new WaitingEvents();
  /** Begin of the growing segment. */
  #cut: Cut | undefined;
  #lastDts: number | undefined;
  #lastDuration = 0;
  /** Number of the newest segment that begins with an open key frame. */
  #lastOpen = -1;

  constructor(window: Window<Data>, format: TrackFormat, limits: PartLimits, form: PartForm<Data>) {
    this.#window = window;
    this.#format = format;
    this.#builder = new PartBuilder(form);
    this.#fit = new PartFit(limits, format);
    this.#early = form.early;
  }

  /** Cut at which the growing segment began; undefined before the first. */
  get cut(): Cut | undefined {
    return this.#cut;
  }

  /** Whether the window has media or a complete segment. */
  get begun(): boolean {
    return this.#window.last !== undefined;
  }

  /** Intended seconds of a part. */
  get target(): number {
    return this.#fit.target;
  }

  /** Upper limit of a part's seconds (PART-TARGET). */
  get partTarget(): number {
    return this.#fit.partTarget;
  }

  /** Whether every listed segment can be decoded without those before it, by its key frame. */
  get independent(): boolean {
    return (this.#window.listed[0]?.msn ?? 0) > this.#lastOpen;
  }

  /** Bytes of the growing segment, its growing part included. */
  get bytes(): number {
    return (this.#window.open?.bytes ?? 0) + this.#builder.bytes;
  }

  /** Whether the growing part has no frame. */
  get empty(): boolean {
    return this.#builder.empty;
  }

  /** Media time at which the growing part begins, in seconds. */
  get partStart(): number {
    return this.#mediaTime(this.#builder.start);
  }

  /** Media time at which the growing part ends by prediction, in seconds. */
  get partEnd(): number {
    return this.#mediaTime(this.#builder.end);
  }

  /** Media time of the newest frame, in seconds; undefined before the first, and after a break. */
  get lastTime(): number | undefined {
    return this.#lastDts === undefined ? undefined : toSeconds(this.#lastDts, this.#format.track.timebase);
  }

  /** Predicted end of the newest frame, in ticks of packets; undefined as `lastTime`. */
  get lastEnd(): number | undefined {
    return this.#lastDts === undefined ? undefined : this.#lastDts + this.#lastDuration;
  }

  /** Puts gaps in front of the first segment. @param seconds length of each */
  lead({ msn, discontinuities, wallTime, time }: Cut, gaps: number, seconds: number): void {
    this.#window.lead(gaps);
    for (let before = gaps; before > 0; before--) {
      const segment = new Segment<Data>(msn - before, this.#format.init, false, wallTime, time - before * seconds);
      segment.duration = seconds;
      this.#window.start(segment, discontinuities - 1);
      this.#window.complete();
    }
  }

  /** Begins the first segment, also after `finish`. */
  start(cut: Cut): void {
    const again = this.begun;
    this.#cut = cut;
    this.#format.begin(cut.msn);
    this.#window.start(this.#segment(cut, again), again ? undefined : cut.discontinuities);
  }

  /** Completes the growing segment; `start` must follow. */
  finish(): void {
    this.#closePart(this.#builder.end);
    const { open } = this.#window;
    if (open !== undefined && this.begun) {
      if (open.parts.length === 0) open.duration = this.#format.frameSeconds;
      this.#window.complete();
    }
    this.#builder.breakTimeline();
    this.#events.clear();
    this.forgetTime();
  }

  /** Lets the next frame have any time. */
  forgetTime(): void {
    this.#lastDts = undefined;
  }

  /** @returns false if an older event was dropped for it */
  addEvent(event: TimedEvent): boolean {
    return this.#events.add(event);
  }

  /**
   * Sets another configuration of the track.
   * @returns whether decoders must be set up anew
   * @throws UnsupportedTrackError, BitstreamError when it cannot be used
   */
  reconfigure(track: MediaTrack): boolean {
    if (!needsReset(track, this.#format.track)) {
      this.#format.update(track);
      return false;
    }
    const init = this.#format.describe(track);
    this.#closePart(this.#builder.end);
    this.#format.replace(track, init);
    this.forgetTime();
    return true;
  }

  /**
   * Adds a frame to the growing part, or to a new one if it does not fit.
   * @param standsIn whether it replaces a missing frame
   * @returns whether the part is complete, for `closePart`
   */
  add(packet: Packet, standsIn: boolean): boolean {
    const builder = this.#builder;
    const { den, isAudio, durations } = this.#format;
    const shift = this.#shift;
    const offset = shift * den;
    const dts = packet.dts + offset;
    const pts = (isAudio ? packet.dts : packet.pts) + offset;
    const { longest } = durations;
    const step = this.#lastDts === undefined || standsIn ? undefined : packet.dts - this.#lastDts;
    const duration = durations.predict(packet, step);
    if (!builder.empty && !this.#fits(dts, duration)) this.#closePart(this.#endBefore(dts));
    this.#lastDts = packet.dts;
    this.#lastDuration = duration;
    const segment = this.#window.open as Segment<Data>;
    if (segment.parts.length === 0 && builder.empty) {
      segment.presentation = pts / den - shift;
      if (packet.key === 'open') this.#lastOpen = segment.msn;
    }
    builder.add(packet, dts, pts, duration, this.#reachOf(packet, Math.max(duration, longest)));
    return builder.full || ((standsIn || this.#isForeseen) && !this.#fits(builder.end, duration));
  }

  /** Ends the growing part as predicted. @param ending whether it is probably the last of its segment */
  closePart(ending: boolean): void {
    this.#closePart(this.#builder.end, ending);
  }

  /**
   * Completes the growing segment and begins the next.
   * @param next decode time of its first frame in ticks of packets, if that follows the newest frame
   * @param breaks whether the timeline breaks
   */
  next(cut: Cut, next: number | undefined, breaks: boolean): void {
    const builder = this.#builder;
    if (!builder.empty) {
      const at = (next ?? Infinity) + this.#shift * this.#format.den;
      // the last frame lasts until the next, if that is plausible
      const near = this.#format.isAudio
        ? Math.abs(at - builder.end) < this.#format.durations.estimate
        : at - builder.last <= this.#format.durations.longest;
      this.#closePart(near ? this.#endBefore(at) : builder.end);
    }
    this.#begin(cut, breaks);
  }

  /** Begins the next segment with the growing part, whose frames come after the cut. */
  takeOver(cut: Cut): void {
    this.#begin(cut, false);
    (this.#window.open as Segment<Data>).presentation = this.partStart;
  }

  #begin(cut: Cut, breaks: boolean): void {
    const { open, kept } = this.#window;
    // a first segment without media is replaced, not completed
    const first = kept.length === 0 && open?.parts.length === 0;
    if (open !== undefined && open.parts.length === 0) {
      if (!first) this.#builder.breakTimeline();
      const seconds = cut.discontinuity ? 0 : cut.time - (this.#cut as Cut).time;
      open.duration = Math.max(this.#format.frameSeconds, seconds);
    }
    if (!first) this.#window.complete();
    this.#format.begin(cut.msn);
    if (breaks || cut.discontinuity) this.#builder.breakTimeline();
    if (cut.jump) this.#events.release();
    this.#cut = cut;
    if (first) this.#window.start(this.#segment(cut, false), cut.discontinuities);
    else this.#window.start(this.#segment(cut, cut.discontinuity));
  }

  #segment({ msn, wallTime, time }: Cut, discontinuity: boolean): Segment<Data> {
    return new Segment<Data>(msn, this.#format.init, discontinuity, wallTime, time);
  }

  #closePart(end: number, ending = false): void {
    const builder = this.#builder;
    if (builder.empty) return;
    const exactEnd = this.#fit.endOf(builder, end);
    const { msn, init, parts } = this.#window.open as Segment<Data>;
    const built = builder.build(exactEnd, this.#events.empty ? NO_EVENTS : this.#eventsUntil(exactEnd), init);
    const duration = built.duration / this.#format.den;
    this.#fit.note(duration);
    const index = parts.length;
    const { independent, data, bytes } = built;
    this.#window.add({ index, duration, independent, data, bytes }, ending, this.#format.renews(msn + 1));
  }

  #eventsUntil(end: number): TimedEvent[] {
    const shift = this.#shift;
    const { from, to } = this.#builder.shown(end);
    const events = this.#events.take(this.#mediaTime(from), this.#mediaTime(to));
    return events.map((event) => ({ ...event, at: event.at + shift, time: event.time + shift }));
  }

  /**
   * Ticks by which the part before a frame may have ended too early. After a gap, players drop frames up to the next key
   * frame (Media Source Extensions, "Coded Frame Processing").
   */
  #reachOf({ key }: Packet, longest: number): number | undefined {
    if (this.#format.isAudio) return undefined;
    return key ? longest : GAP_SECONDS * this.#format.den;
  }

  /** Whether the newest frame's duration is known; if not, the next frame closes the part. */
  get #isForeseen(): boolean {
    return this.#format.isAudio || (this.#early && this.#format.durations.isSure);
  }

  /** End of the growing part before a frame: video lasts until it, audio if the part's limit allows. */
  #endBefore(dts: number): number {
    const builder = this.#builder;
    if (dts <= builder.last) return builder.end;
    return !this.#format.isAudio || dts <= this.#fit.latestEnd(builder.start) ? dts : builder.end;
  }

  #fits(dts: number, duration: number): boolean {
    const begin = ((this.#cut as Cut).time + this.#shift) * this.#format.den;
    return this.#fit.fits(this.#builder, dts, duration, begin);
  }

  /** Seconds added to the source's times, to keep decode times in the form's range. */
  get #shift(): number {
    return this.#cut?.shift ?? 0;
  }

  #mediaTime(ticks: number): number {
    return toSeconds(ticks, this.#format.track.timebase) - this.#shift;
  }
}
