import { LeadingPictures } from '../core/leading-pictures.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { sameSets, type MediaTrack } from '../core/track.ts';
import type { Cut } from './cut.ts';
import { differs } from './description.ts';
import { FrameDuration } from './frame-duration.ts';
import { KeyInterval } from './key-interval.ts';
import { PartBuilder } from './part-builder.ts';
import { WaitingEvents, type TimedEvent } from './part-events.ts';
import { PartFit, type PartLimits } from './part-fit.ts';
import type { PartForm } from './part-form.ts';
import { Segment, type Init } from './segment.ts';
import { StandIn } from './stand-in.ts';
import { Window, type WindowLimits } from './window.ts';

export interface PackagerLimits extends PartLimits, WindowLimits {
  /** Media time from which a frame of the track (of video, a key frame) is expected to begin a segment; undefined if unknown. */
  readonly nextCut: () => number | undefined;
}

export type Finding = 'next' | 'late' | 'jump' | 'changed';

/** Times of two tracks that differ by less are equal. */
const EPSILON_SECONDS = 0.001;
const BACK_SECONDS = 1;
const JUMP_SECONDS = 10;
/** Factor of the thresholds of a jump after another track has jumped. */
const FOLLOWING_SHARE = 0.5;
/** Share of a part: audio further ahead of the cut than this has made parts before the segment's end is known. */
const AHEAD_SHARE = 0.9;
/** Seconds of a frame that replaces missing video. */
const STILL_SECONDS = 0.5;
const NO_EVENTS: readonly TimedEvent[] = [];

/** Makes parts and segments of one track, cut where the stream's segmenter decides. */
export class TrackPackager<Data = Buffer> {
  readonly window: Window<Data>;
  readonly keyInterval: KeyInterval;
  readonly #form: PartForm<Data>;
  readonly #builder: PartBuilder<Data>;
  #track: MediaTrack;
  #init: Init;
  /** Initialization from the next segment on; decoders need no reset for it. */
  #nextInit: Init | undefined;
  #durations: FrameDuration;
  readonly #fit: PartFit;
  readonly #events = new WaitingEvents();
  readonly #nextCut: () => number | undefined;
  /** Oldest first. */
  readonly #pending: Cut[] = [];
  #current: Cut | undefined;
  #lastDts: number | undefined;
  #arrivedAt = Infinity;
  /** Media time of the last real frame, in seconds, while frames after it are replaced. */
  #replacedFrom: number | undefined;
  #lastDuration = 0;
  readonly #standIn: StandIn;
  #hasLeft = false;
  /** Seconds added to the source's times, to keep decode times in the form's range. */
  #shift = 0;
  #needKey: boolean;
  readonly #leading = new LeadingPictures();
  /** Number of the newest segment that begins with an open key frame. */
  #lastOpen = -1;
  /** The next frame follows the pending cut, whatever its time. */
  #broken = false;
  /** The track was already past the newest cut. */
  #ahead = false;
  /** The other tracks no longer wait for this one. */
  #absent = false;
  /** The absent track is catching up: the others wait again. */
  #returns = false;

  /**
   * @param initVersion unused so far for this track id
   * @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used
   */
  constructor(track: MediaTrack, limits: PackagerLimits, form: PartForm<Data>, initVersion: number) {
    this.window = new Window(limits);
    this.#form = form;
    this.keyInterval = new KeyInterval(track);
    this.#track = track;
    this.#builder = new PartBuilder(track.type, form);
    this.#init = form.describe(track, initVersion);
    this.#durations = new FrameDuration(track);
    this.#fit = new PartFit(limits, track, this.#durations);
    this.#nextCut = limits.nextCut;
    this.#needKey = track.type === 'video';
    this.#standIn = new StandIn(track);
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Sets whether the stream has the track; otherwise its media is replaced without a wait. */
  stay(isThere: boolean): void {
    if (!isThere && !this.#hasLeft) this.#standIn.begin();
    this.#hasLeft = !isThere;
  }

  get track(): MediaTrack {
    return this.#track;
  }

  get init(): Init {
    return this.#init;
  }

  get msn(): number {
    return this.#current?.msn ?? 0;
  }

  /** Seconds that a frame is expected to last. */
  get frameSeconds(): number {
    return this.#durations.estimate / this.#track.timebase.den;
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
    return (this.window.listed[0]?.msn ?? 0) > this.#lastOpen;
  }

  /** Whether the other tracks had a discontinuity that this one has not reached. */
  get awaitsDiscontinuity(): boolean {
    return this.#pending.some(({ discontinuity }) => discontinuity);
  }

  /** Whether the other tracks have jumped to another timeline. */
  get awaitsJump(): boolean {
    return this.#pending.some(({ jump }) => jump);
  }

  /** Whether the other tracks began a segment that this one has not reached. */
  get behind(): boolean {
    return this.#pending.length > 0;
  }

  /** Media time of the newest frame, in seconds; undefined before the first, and after a change of configuration. */
  get lastTime(): number | undefined {
    return this.#lastDts === undefined ? undefined : toSeconds(this.#lastDts, this.#track.timebase);
  }

  /** Media time, in seconds, since the growing segment began. */
  elapsed(packet: Packet): number {
    return this.#seconds(packet) - (this.#current?.time ?? 0);
  }

  /** Seconds by which a frame may be early and still end the segment. */
  get tolerance(): number {
    return this.#track.type === 'audio' ? EPSILON_SECONDS : this.frameSeconds + (this.#current?.slack ?? 0);
  }

  /** Bytes of the growing segment, its unfinished part included. */
  get openBytes(): number {
    return (this.window.open?.bytes ?? 0) + this.#builder.bytes;
  }

  /** Puts gaps in front of the first segment. @param seconds length of each */
  lead({ msn, discontinuities, wallTime, time }: Cut, gaps: number, seconds: number): void {
    this.window.lead(gaps);
    for (let before = gaps; before > 0; before--) {
      const segment = new Segment<Data>(msn - before, this.#init, false, wallTime, time - before * seconds);
      segment.duration = seconds;
      this.window.start(segment, discontinuities - 1);
      this.window.complete();
    }
  }

  /** Begins the first segment, also after `finish`. */
  start(cut: Cut): void {
    const again = this.#begun;
    this.#current = cut;
    this.#shift = cut.shift;
    this.window.start(this.#segment(cut, again), again ? undefined : cut.discontinuities);
  }

  /** Ends the growing segment and all pending ones; `start` must follow. */
  finish(): void {
    while (this.behind) this.#startSegment();
    this.#closePart(this.#builder.end);
    const { open } = this.window;
    if (open !== undefined && this.#begun) {
      if (open.parts.length === 0) open.duration = this.frameSeconds;
      this.window.complete();
    }
    this.#builder.breakTimeline();
    this.#events.clear();
    if (!this.#hasLeft) this.#standIn.stop();
    this.#lastDts = undefined;
    this.#needKey = this.#track.type === 'video';
    this.#broken = false;
    this.#isBack();
  }

  /** Sets another configuration of the track, between `finish` and `start`. @throws as `push` */
  adopt(track: MediaTrack): void {
    if (!this.#begun || track === this.#track) return;
    this.#reconfigure(track);
    this.#broken = false;
  }

  /** Classifies a packet, without changing anything. */
  inspect(packet: Packet): Finding {
    if (packet.track !== this.#track && differs(packet.track as MediaTrack, this.#track)) return 'changed';
    const { lastTime } = this;
    const time = this.#seconds(packet);
    if (this.#absent && !this.#current?.jump && time < this.#earliest) return 'late';
    if (lastTime === undefined) return 'next';
    if (this.jumps(packet)) return 'jump';
    return time > lastTime ? 'next' : 'late';
  }

  /** Records the arrival of a packet, used or not. @param newest time of the newest packet of any track, in seconds */
  arrived(packet: Packet, newest: number): void {
    const time = this.#seconds(packet);
    if (this.#needKey && !packet.key) this.#standIn.noteLost(time - this.#arrivedAt);
    else this.#standIn.note(packet, Math.max(0, newest - time));
    this.#arrivedAt = time;
  }

  /** @param newest as of `arrived` */
  isMissing(newest: number): boolean {
    const reached = this.#reached;
    return (
      reached !== undefined &&
      !this.awaitsJump &&
      this.#standIn.isDue(
        newest - toSeconds(reached, this.#track.timebase),
        this.#standInTicks / this.#track.timebase.den,
      )
    );
  }

  get isReplaced(): boolean {
    return this.#standIn.isActive;
  }

  /** Makes the next replacement packet, for `push`; undefined if the track cannot be replaced. */
  standIn(): Packet | undefined {
    const reached = this.#reached;
    return reached === undefined ? undefined : this.#standIn.packet(this.#track, reached, this.#standInTicks);
  }

  /** Whether a packet's time does not continue from the one before. */
  jumps(packet: Packet): boolean {
    const { lastTime } = this;
    if (lastTime === undefined || this.#isReplacedAt(this.#seconds(packet))) return false;
    const step = toSeconds(packet.dts, packet.track.timebase) - lastTime;
    const share = this.awaitsJump ? FOLLOWING_SHARE : 1;
    return step <= -BACK_SECONDS * share || step > JUMP_SECONDS * share;
  }

  cut(cut: Cut): void {
    this.#pending.push(cut);
    if (this.#absent && (!this.#returns || cut.jump)) {
      while (this.behind) this.#startSegment();
      return;
    }
    const { lastTime = -Infinity } = this;
    const isAudio = this.#track.type === 'audio';
    this.#ahead = lastTime >= cut.time + (isAudio ? this.target * AHEAD_SHARE : -this.frameSeconds / 2);
    if (!isAudio || this.#pending.length > 1 || this.#builder.empty || cut.discontinuity) return;
    if (this.window.ending && this.#reaches(cut, this.#mediaTime(this.#builder.start))) this.#takeOver();
    else if (this.#reaches(cut, this.#mediaTime(this.#builder.end))) this.#startSegment();
  }

  /** Begins the oldest pending segment with this packet, without waiting for a key frame. */
  advance(packet: Packet): void {
    if (this.behind) this.#startSegment(packet.dts);
  }

  /** Begins all pending segments up to a number, because the others have waited long enough; all of them if the track is absent. */
  expire(msn: number): void {
    const isAway = (): boolean => this.#absent && !this.#returns;
    for (let cut = this.#pending[0]; cut !== undefined && (isAway() || cut.msn <= msn); cut = this.#pending[0]) {
      const { lastTime } = this;
      if (cut.jump || lastTime === undefined || lastTime < cut.time) {
        this.#absent = true;
        this.#returns = false;
      }
      if (cut.jump) this.#lastDts = undefined;
      this.#startSegment();
    }
  }

  /**
   * Records a packet that `inspect` called late.
   * @param near whether the track is close enough for the others to wait
   */
  missed(near: boolean): void {
    if (!this.#absent) return;
    this.#returns = near;
    // later frames may depend on the dropped one
    this.#needKey = this.#track.type === 'video';
  }

  /** Adds an event to the part that covers its time, or to the next one. @returns false if an older event was dropped for it */
  addEvent(event: TimedEvent): boolean {
    return this.#events.add(event);
  }

  /** Breaks the timeline before the next frame: the track delivers media, and waits for that frame. */
  break(): void {
    this.#isBack();
    while (this.behind && this.#pending[0]?.discontinuity === false) this.#startSegment();
    this.#broken = true;
    this.#needKey = this.#track.type === 'video';
  }

  /**
   * Packages a packet that `inspect` did not call late.
   * @param standsIn whether it comes from `standIn`
   * @throws UnsupportedTrackError, BitstreamError when it brings a configuration that cannot be used
   */
  push(packet: Packet, standsIn = false): void {
    if (packet.track !== this.#track) this.#reconfigure(packet.track as MediaTrack);
    if (this.#needKey && !packet.key) return;
    if (this.#leading.waits && this.#leading.drops(packet)) return;
    const time = this.#seconds(packet);
    if (this.#lastDts === undefined && !this.#broken && time < this.#earliest) return;
    this.#isBack();
    if (this.#broken && this.behind) this.#startSegment(packet.dts);
    for (
      let [cut] = this.#pending;
      cut !== undefined && packet.key && this.#reaches(cut, time);
      [cut] = this.#pending
    ) {
      if (this.#owesPart) break;
      this.#startSegment(packet.dts);
    }
    if (this.#needKey && !standsIn) this.#leading.begin(packet);
    // frames after a repeated frame cannot refer to it
    this.#needKey = standsIn && this.#track.type === 'video';
    this.#replacedFrom = standsIn ? (this.#replacedFrom ?? this.lastTime) : undefined;
    this.#append(packet, standsIn);
  }

  /** End of the packaged media, in ticks of packets; undefined before the first part. */
  get #reached(): number | undefined {
    if (!this.#begun || this.#current === undefined) return undefined;
    const { den } = this.#track.timebase;
    const begin = Math.round(this.#current.time * den);
    if (this.#lastDts === undefined) return begin;
    const end = this.#lastDts + this.#lastDuration;
    return this.#absent ? Math.max(begin, end) : end;
  }

  get #standInTicks(): number {
    const seconds = this.#track.type === 'audio' ? this.frameSeconds : Math.min(STILL_SECONDS, this.target);
    return Math.round(seconds * this.#track.timebase.den);
  }

  #isReplacedAt(time: number): boolean {
    const { lastTime } = this;
    return this.#replacedFrom !== undefined && lastTime !== undefined && time > this.#replacedFrom && time <= lastTime;
  }

  /** Whether audio, which may end a segment at any frame, must first make the part that the preload hint named. */
  get #owesPart(): boolean {
    const { open, ending } = this.window;
    const [cut] = this.#pending;
    if (this.#track.type === 'video' || ending || !this.#builder.empty || open === undefined) return false;
    return open.parts.length > 0 && this.#pending.length === 1 && cut?.discontinuity === false;
  }

  #isBack(): void {
    this.#absent = false;
    this.#returns = false;
  }

  #append(packet: Packet, standsIn: boolean): void {
    const builder = this.#builder;
    const { den } = this.#track.timebase;
    const offset = this.#shift * den;
    const dts = packet.dts + offset;
    const pts = (this.#track.type === 'audio' ? packet.dts : packet.pts) + offset;
    const { longest } = this.#durations;
    const duration = this.#durations.predict(
      packet,
      this.#lastDts === undefined || standsIn ? undefined : packet.dts - this.#lastDts,
    );
    if (!builder.empty && !this.#fits(dts, duration)) this.#closePart(this.#endBefore(dts));
    this.#lastDts = packet.dts;
    this.#lastDuration = duration;
    const segment = this.window.open as Segment<Data>;
    if (segment.parts.length === 0 && builder.empty) {
      segment.presentation = pts / den - this.#shift;
      if (packet.key === 'open') this.#lastOpen = segment.msn;
    }
    builder.add(packet, dts, pts, duration, this.#reachOf(packet, Math.max(duration, longest)));
    if (builder.full || ((standsIn || this.#isForeseen) && !this.#fits(builder.end, duration)))
      this.#closePart(builder.end, this.#isLast());
  }

  /**
   * Ticks by which the part before a frame may have ended too early. After a gap, players drop frames up to the next key
   * frame (Media Source Extensions, "Coded Frame Processing").
   */
  #reachOf({ key, track: { type } }: Packet, longest: number): number | undefined {
    if (type === 'audio') return undefined;
    return key ? longest : JUMP_SECONDS * this.#track.timebase.den;
  }

  /** Whether the newest frame's duration is known; if not, the next frame closes the part. */
  get #isForeseen(): boolean {
    return this.#track.type === 'audio' || (this.#form.early && this.#durations.isSure);
  }

  /** End of the growing part before a frame: video lasts until it, audio if the part's limit allows. */
  #endBefore(dts: number): number {
    const builder = this.#builder;
    const { last } = builder;
    if (dts <= last) return builder.end;
    return this.#track.type === 'video' || dts <= this.#fit.latestEnd(builder.start) ? dts : builder.end;
  }

  #fits(dts: number, duration: number): boolean {
    const begin = ((this.#current as Cut).time + this.#shift) * this.#track.timebase.den;
    return this.#fit.fits(this.#builder, dts, duration, begin);
  }

  /** @param ending whether the part is probably the last of its segment */
  #closePart(end: number, ending = false): void {
    if (this.#builder.empty) return;
    const builder = this.#builder;
    const exactEnd = this.#fit.endOf(builder, end);
    const built = builder.build(exactEnd, this.#events.empty ? NO_EVENTS : this.#eventsUntil(exactEnd));
    const duration = built.duration / this.#track.timebase.den;
    this.#fit.note(duration);
    const index = this.window.open?.parts.length ?? 0;
    const { independent, data, bytes } = built;
    this.window.add({ index, duration, independent, data, bytes }, ending);
  }

  #eventsUntil(end: number): TimedEvent[] {
    const { from, to } = this.#builder.shown(end);
    const events = this.#events.take(this.#mediaTime(from), this.#mediaTime(to));
    return events.map((event) => ({ ...event, at: event.at + this.#shift, time: event.time + this.#shift }));
  }

  /** Whether the growing part, if full, is probably the last of its segment. */
  #isLast(): boolean {
    const [cut] = this.#pending;
    const end = this.#mediaTime(this.#builder.end);
    const isAudio = this.#track.type === 'audio';
    if (!isAudio && !this.keyInterval.isDue(end, this.frameSeconds)) return false;
    if (cut !== undefined) return !cut.discontinuity && this.#reaches(cut, end);
    const from = this.#ahead ? undefined : this.#nextCut();
    return from !== undefined && end >= from && (!isAudio || this.#mediaTime(this.#builder.start) < from);
  }

  /** Begins the segment of the oldest pending cut. @param next decode time of its first frame, if there is one */
  #startSegment(next?: number): void {
    const cut = this.#pending.shift() as Cut;
    const builder = this.#builder;
    const { den } = this.#track.timebase;
    if (!builder.empty) {
      const at = (next ?? Infinity) + this.#shift * den;
      // the last frame lasts until the next, if that is plausible
      const near =
        this.#track.type === 'video'
          ? at - builder.last <= this.#durations.longest && !this.behind
          : Math.abs(at - builder.end) < this.#durations.estimate;
      this.#closePart(!this.#broken && near ? this.#endBefore(at) : builder.end);
    }
    this.#goTo(cut);
  }

  /** Moves the growing part, whose frames come after the cut, to the segment of the only pending cut. */
  #takeOver(): void {
    this.#goTo(this.#pending.shift() as Cut);
    (this.window.open as Segment<Data>).presentation = this.#mediaTime(this.#builder.start);
  }

  #goTo(cut: Cut): void {
    const { open, kept } = this.window;
    // a first segment without media is replaced, not completed
    const first = kept.length === 0 && open?.parts.length === 0;
    if (open !== undefined && open.parts.length === 0) {
      if (!first) this.#builder.breakTimeline();
      open.duration = Math.max(this.frameSeconds, cut.discontinuity ? 0 : cut.time - (this.#current as Cut).time);
    }
    if (!first) this.window.complete();
    this.#init = this.#nextInit ?? this.#init;
    this.#nextInit = undefined;
    if (this.#broken || cut.discontinuity) this.#builder.breakTimeline();
    if (cut.jump) this.#events.release();
    this.#broken = false;
    this.#current = cut;
    this.#shift = cut.shift;
    if (first) this.window.start(this.#segment(cut, false), cut.discontinuities);
    else this.window.start(this.#segment(cut, cut.discontinuity));
  }

  get #begun(): boolean {
    return this.window.last !== undefined;
  }

  #segment({ msn, wallTime, time }: Cut, discontinuity: boolean): Segment<Data> {
    return new Segment<Data>(msn, this.#init, discontinuity, wallTime, time);
  }

  #reconfigure(track: MediaTrack): void {
    if (differs(track, this.#track)) {
      const init = this.#form.describe(track, this.#init.version + 1);
      this.#closePart(this.#builder.end);
      this.#init = init;
      this.#nextInit = undefined;
      this.#durations = new FrameDuration(track);
      this.#lastDts = undefined;
      this.#needKey = track.type === 'video';
      this.#broken = true;
    } else if (!sameSets(track, this.#track)) {
      const next = this.#form.describe(track, this.#init.version + 1);
      if (next.codec !== this.#init.codec) this.#nextInit = next;
    }
    this.#track = track;
    this.#fit.reconfigure(track, this.#durations);
  }

  #reaches({ time: wanted, slack, jump }: Cut, time: number): boolean {
    if (jump) return false;
    const { frameSeconds } = this;
    if (this.#track.type === 'video') return time >= wanted - (frameSeconds + slack) / 2 - EPSILON_SECONDS;
    // a part announced as the last stays the last, if possible
    return time >= wanted - (this.window.ending ? frameSeconds / 2 : EPSILON_SECONDS);
  }

  /** Earliest media time of a frame of the growing segment, in seconds. */
  get #earliest(): number {
    const { time, slack } = this.#current as Cut;
    return time - (this.frameSeconds + (this.#track.type === 'video' ? slack : 0)) / 2 - EPSILON_SECONDS;
  }

  #seconds(packet: Packet): number {
    return toSeconds(packet.dts, this.#track.timebase);
  }

  #mediaTime(ticks: number): number {
    return toSeconds(ticks, this.#track.timebase) - this.#shift;
  }
}
