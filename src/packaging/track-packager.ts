import { LeadingPictures } from '../core/leading-pictures.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import type { Cut } from './cut.ts';
import { needsReset } from './initialization.ts';
import { KeyInterval } from './key-interval.ts';
import type { TimedEvent } from './part-events.ts';
import type { PartLimits } from './part-fit.ts';
import type { PartForm } from './part-form.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { Init } from './segment.ts';
import { StandIn } from './stand-in.ts';
import { TrackFormat } from './track-format.ts';
import { TrackPosition } from './track-position.ts';
import { Window, type WindowLimits } from './window.ts';

export interface PackagerLimits extends PartLimits, WindowLimits {
  /** Media time from which a frame of the track (of video, a key frame) is expected to begin a segment; undefined if unknown. */
  readonly nextCut: () => number | undefined;
}

export type Finding = 'next' | 'late' | 'jump' | 'changed';

/** Demand on the next frame. Every frame of audio is a key frame. */
type Next =
  /** Any frame, on the same timeline. */
  | 'continues'
  /** A key frame: those before it cannot be decoded, or were replaced. */
  | 'needs key'
  /** A key frame that begins the oldest pending segment, whatever its time. */
  | 'after break';

type NextEvent = 'packaged' | 'lost' | 'broken' | 'begun' | 'ended';

/** New states by events; without an entry, the state stays. */
const NEXT: Readonly<Record<Next, Partial<Record<NextEvent, Next>>>> = {
  continues: { lost: 'needs key', broken: 'after break', ended: 'needs key' },
  'needs key': { packaged: 'continues', broken: 'after break' },
  'after break': { begun: 'needs key', ended: 'needs key' },
};

/** Times of two tracks that differ by less are equal. */
const EPSILON_SECONDS = 0.001;
const BACK_SECONDS = 1;
const JUMP_SECONDS = 10;
/** Factor of the thresholds of a jump after another track has jumped. */
const FOLLOWING_SHARE = 0.5;
/** Share of a part: audio further ahead of the cut than this has made parts before the segment's end is known. */
const AHEAD_SHARE = 0.9;

/** Makes parts and segments of one track, cut where the stream's segmenter decides. */
export class TrackPackager<Data = Buffer> {
  readonly window: Window<Data>;
  readonly keyInterval: KeyInterval;
  readonly standIn: StandIn;
  readonly #format: TrackFormat;
  readonly #writer: SegmentWriter<Data>;
  readonly #nextCut: () => number | undefined;
  readonly #position = new TrackPosition();
  readonly #leading = new LeadingPictures();
  #next: Next = 'needs key';
  /** Media time of the last real frame, in seconds, while frames after it are replaced. */
  #replacedFrom: number | undefined;

  /**
   * @param initVersion unused so far for this track id
   * @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used
   */
  constructor(track: MediaTrack, limits: PackagerLimits, form: PartForm<Data>, initVersion: number) {
    this.window = new Window(limits);
    this.keyInterval = new KeyInterval(track);
    this.#format = new TrackFormat(track, form, initVersion);
    this.#writer = new SegmentWriter(this.window, this.#format, limits, form);
    this.#nextCut = limits.nextCut;
    this.standIn = new StandIn(this.#format, this.#writer, this.#position);
  }

  get track(): MediaTrack {
    return this.#format.track;
  }

  get init(): Init {
    return this.#format.init;
  }

  get msn(): number {
    return this.#writer.cut?.msn ?? 0;
  }

  /** Seconds that a frame is expected to last. */
  get frameSeconds(): number {
    return this.#format.frameSeconds;
  }

  /** Intended seconds of a part. */
  get target(): number {
    return this.#writer.target;
  }

  /** Upper limit of a part's seconds (PART-TARGET). */
  get partTarget(): number {
    return this.#writer.partTarget;
  }

  /** Seconds added to the source's times in the growing segment. */
  get shift(): number {
    return this.#writer.cut?.shift ?? 0;
  }

  /** Whether every listed segment can be decoded without those before it, by its key frame. */
  get independent(): boolean {
    return this.#writer.independent;
  }

  /** Whether the other tracks had a discontinuity that this one has not reached. */
  get awaitsDiscontinuity(): boolean {
    return this.#position.awaitsDiscontinuity;
  }

  /** Whether the other tracks have jumped to another timeline. */
  get awaitsJump(): boolean {
    return this.#position.awaitsJump;
  }

  /** Whether the other tracks began a segment that this one has not reached. */
  get behind(): boolean {
    return this.#position.pending > 0;
  }

  /** Media time of the newest frame, in seconds; undefined before the first, and after a change of configuration. */
  get lastTime(): number | undefined {
    return this.#writer.lastTime;
  }

  /** Bytes of the growing segment, its unfinished part included. */
  get openBytes(): number {
    return this.#writer.bytes;
  }

  /** Seconds by which a frame may be early and still end the segment. */
  get tolerance(): number {
    return this.#format.isAudio ? EPSILON_SECONDS : this.frameSeconds + (this.#writer.cut?.slack ?? 0);
  }

  /** Media time, in seconds, since the growing segment began. */
  elapsed(packet: Packet): number {
    return this.#seconds(packet) - (this.#writer.cut?.time ?? 0);
  }

  /** Puts gaps in front of the first segment. @param seconds length of each */
  lead(cut: Cut, gaps: number, seconds: number): void {
    this.#writer.lead(cut, gaps, seconds);
  }

  /** Begins the first segment, also after `finish`. */
  start(cut: Cut): void {
    this.#writer.start(cut);
  }

  /** Ends the growing segment and all pending ones; `start` must follow. */
  finish(): void {
    while (this.behind) this.#startSegment();
    this.#writer.finish();
    this.standIn.finish();
    this.#move('ended');
    this.#position.comeBack();
  }

  /** Sets another configuration of the track, between `finish` and `start`. @throws as `push` */
  adopt(track: MediaTrack): void {
    if (this.#writer.begun && track !== this.track) this.#writer.reconfigure(track);
  }

  /** Classifies a packet, without changing anything. */
  inspect(packet: Packet): Finding {
    if (packet.track !== this.track && needsReset(packet.track as MediaTrack, this.track)) return 'changed';
    const { lastTime } = this;
    const time = this.#seconds(packet);
    if (this.#position.isAway && !this.#writer.cut?.jump && time < this.#earliest) return 'late';
    if (lastTime === undefined) return 'next';
    if (this.jumps(packet)) return 'jump';
    return time > lastTime ? 'next' : 'late';
  }

  /** Whether a packet's time does not continue from the one before. */
  jumps(packet: Packet): boolean {
    const { lastTime } = this;
    if (lastTime === undefined) return false;
    const time = this.#seconds(packet);
    if (this.#replacedFrom !== undefined && time > this.#replacedFrom && time <= lastTime) return false;
    const step = toSeconds(packet.dts, packet.track.timebase) - lastTime;
    const share = this.awaitsJump ? FOLLOWING_SHARE : 1;
    return step <= -BACK_SECONDS * share || step > JUMP_SECONDS * share;
  }

  /** Records the arrival of a packet, used or not. @param newest time of the newest packet of any track, in seconds */
  arrived(packet: Packet, newest: number): void {
    this.standIn.note(packet, this.#seconds(packet), newest, this.#next === 'continues' || packet.key !== false);
  }

  cut(cut: Cut): void {
    if (this.#position.add(cut)) {
      while (this.behind) this.#startSegment();
      return;
    }
    const { lastTime = -Infinity } = this;
    const { isAudio } = this.#format;
    const isPast = lastTime >= cut.time + (isAudio ? this.target * AHEAD_SHARE : -this.frameSeconds / 2);
    this.#position.compare(isPast);
    if (!isAudio || this.#position.pending > 1 || this.#writer.empty || cut.discontinuity) return;
    if (this.window.ending && this.#reaches(cut, this.#writer.partStart)) {
      this.#writer.takeOver(this.#position.take());
    } else if (this.#reaches(cut, this.#writer.partEnd)) {
      this.#startSegment();
    }
  }

  /** Begins the oldest pending segment with this packet, without waiting for a key frame. */
  advance(packet: Packet): void {
    if (this.behind) this.#startSegment(packet.dts);
  }

  /** Begins all pending segments up to a number, because the others have waited long enough; all of them if the track is absent. */
  expire(msn: number): void {
    while (this.#position.isOver(msn)) {
      const { jump, time } = this.#position.oldest as Cut;
      if (jump || (this.lastTime ?? -Infinity) < time) this.#position.expire();
      if (jump) this.#writer.forgetTime();
      this.#startSegment();
    }
  }

  /**
   * Records a packet that `inspect` called late.
   * @param near whether the track is close enough for the others to wait
   */
  missed(near: boolean): void {
    if (!this.#position.isAway) return;
    this.#position.missed(near);
    // later frames may depend on the dropped one
    this.#move('lost');
  }

  /** Adds an event to the part that covers its time, or to the next one. @returns false if an older event was dropped for it */
  addEvent(event: TimedEvent): boolean {
    return this.#writer.addEvent(event);
  }

  /** Breaks the timeline before the next frame: the track delivers media, and waits for that frame. */
  break(): void {
    this.#position.comeBack();
    while (this.#position.oldest?.discontinuity === false) this.#startSegment();
    this.#move('broken');
  }

  /**
   * Packages a packet that `inspect` did not call late.
   * @param standsIn whether it comes from `standIn`
   * @throws UnsupportedTrackError, BitstreamError when it brings a configuration that cannot be used
   */
  push(packet: Packet, standsIn = false): void {
    if (packet.track !== this.track && this.#writer.reconfigure(packet.track as MediaTrack)) this.#move('broken');
    if (this.#next !== 'continues' && !packet.key) return;
    if (this.#leading.waits && this.#leading.drops(packet)) return;
    const time = this.#seconds(packet);
    if (this.lastTime === undefined && this.#next !== 'after break' && time < this.#earliest) return;
    this.#position.comeBack();
    if (this.#next === 'after break') this.#startSegment(packet.dts);
    while (packet.key && this.#reaches(this.#position.oldest, time) && !this.#owesPart) this.#startSegment(packet.dts);
    if (this.#next !== 'continues' && !standsIn) this.#leading.begin(packet);
    // frames after a repeated frame cannot refer to it
    this.#move(standsIn ? 'lost' : 'packaged');
    this.#replacedFrom = standsIn ? (this.#replacedFrom ?? this.lastTime) : undefined;
    if (this.#writer.add(packet, standsIn)) this.#writer.closePart(this.#isLast());
  }

  #move(event: NextEvent): void {
    this.#next = NEXT[this.#next][event] ?? this.#next;
  }

  /** Begins the segment of the oldest pending cut. @param next decode time of its first frame, if there is one */
  #startSegment(next?: number): void {
    const cut = this.#position.take();
    const breaks = this.#next === 'after break';
    const follows = !breaks && (this.#format.isAudio || !this.behind);
    this.#writer.next(cut, follows ? next : undefined, breaks);
    this.#move('begun');
  }

  /** Whether audio, which may end a segment at any frame, must first make the part that the preload hint named. */
  get #owesPart(): boolean {
    const { open, ending } = this.window;
    const { oldest, pending } = this.#position;
    if (!this.#format.isAudio || ending || !this.#writer.empty || open === undefined) return false;
    return open.parts.length > 0 && pending === 1 && oldest?.discontinuity === false;
  }

  /** Whether the growing part, if full, is probably the last of its segment. */
  #isLast(): boolean {
    const { oldest, isAhead } = this.#position;
    const { partStart, partEnd } = this.#writer;
    const { isAudio } = this.#format;
    if (!isAudio && !this.keyInterval.isDue(partEnd, this.frameSeconds)) return false;
    if (oldest !== undefined) return !oldest.discontinuity && this.#reaches(oldest, partEnd);
    const from = isAhead ? undefined : this.#nextCut();
    return from !== undefined && partEnd >= from && (!isAudio || partStart < from);
  }

  #reaches(cut: Cut | undefined, time: number): boolean {
    if (cut === undefined || cut.jump) return false;
    const { frameSeconds } = this;
    if (!this.#format.isAudio) return time >= cut.time - (frameSeconds + cut.slack) / 2 - EPSILON_SECONDS;
    // a part announced as the last stays the last, if possible
    return time >= cut.time - (this.window.ending ? frameSeconds / 2 : EPSILON_SECONDS);
  }

  /** Earliest media time of a frame of the growing segment, in seconds. */
  get #earliest(): number {
    const { time, slack } = this.#writer.cut as Cut;
    return time - (this.frameSeconds + (this.#format.isAudio ? 0 : slack)) / 2 - EPSILON_SECONDS;
  }

  #seconds(packet: Packet): number {
    return toSeconds(packet.dts, this.track.timebase);
  }
}
