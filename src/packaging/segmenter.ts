import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { isBeside, isMedia, type DataTrack, type MediaTrack, type Track } from '../core/track.ts';
import type { FaultLog, Logger } from '../log/log.ts';
import { Breaks, type BreaksOptions } from './breaks.ts';
import { CutSchedule } from './cut-schedule.ts';
import { cutAfter, firstCut, type BreakCause, type Cut } from './cut.ts';
import { TrackLag, MAX_LAG_SECONDS } from './track-lag.ts';
import { Leaders } from './leaders.ts';
import { Packagers } from './packagers.ts';
import type { PartForm } from './part-form.ts';
import type { Resumption, PlaylistPosition } from './playlist-position.ts';
import { isRefusal } from './refusals.ts';
import { SegmentLength } from './segment-length.ts';
import { TargetDuration } from './target-duration.ts';
import { TrackPackager } from './track-packager.ts';
import { WallTime, type MediaClock } from './wall-time.ts';
import type { WindowLimits } from './window.ts';

export interface SegmenterOptions {
  /** Seconds. */
  readonly chunkDuration: number;
  /** Seconds after which a segment ends at the next key frame. */
  readonly segmentDuration: number;
  /** Seconds of the first segment, at most `segmentDuration`: many players start when it is complete. Later ones grow to full length. */
  readonly firstSegmentDuration: number;
  /** Complete segments in a playlist; more where they are short. */
  readonly segmentCount: number;
  /** Media sequence number of the first segment. */
  readonly firstMsn: number;
  /** Playlist state of the stream that this one continues. */
  readonly past?: Resumption;
  /** Options of the tags for breaks and interstitials. */
  readonly breaks?: BreaksOptions | undefined;
}

/** No segment grows: before the first key frame, after an end, and after the last track has left. */
interface Waiting {
  readonly kind: 'waiting';
  /** Newest cut; undefined before the first. */
  readonly cut: Cut | undefined;
  /** Media time of the first key frame that waits for the leader's, in seconds. */
  readonly since: number | undefined;
}

/** Segments grow. */
interface Running {
  readonly kind: 'running';
  /** Begin of the newest segments. */
  readonly cut: Cut;
}

/** The segments have ended for good: packets and new tracks are ignored. */
interface Concluded {
  readonly kind: 'concluded';
  readonly cut: Cut | undefined;
}

type Phase = Waiting | Running | Concluded;

/** Transitions. */
const TO = {
  /** A key frame waits for the leader's. */
  wait: ({ cut }: Waiting, since: number): Waiting => ({ kind: 'waiting', cut, since }),
  /** Segments begin: the first ones, or the next. */
  run: (_from: Waiting | Running, cut: Cut): Running => ({ kind: 'running', cut }),
  /** The growing segments end. */
  end: ({ cut }: Running): Waiting => ({ kind: 'waiting', cut, since: undefined }),
  conclude: ({ cut }: Waiting): Concluded => ({ kind: 'concluded', cut }),
} as const;

/** Seconds after which a segment ends without a key frame, to bound memory. */
export const MAX_SEGMENT_SECONDS = 30;
/** Target durations that a playlist keeps at least when it drops a segment (RFC 8216 6.2.2). */
export const LEAST_TARGETS = 3;
const NO_CLOCK: MediaClock = { at: () => Infinity };

/**
 * Cuts the tracks of one stream. Segments begin at key frames of the video track that has the rarest (or by duration,
 * if there is only audio). The other tracks follow, each at its own next key frame, so that media sequence numbers and
 * discontinuities agree on all tracks.
 */
export class Segmenter<Data = Buffer> {
  readonly breaks: Breaks;
  readonly #form: PartForm<Data>;
  readonly #options: SegmenterOptions;
  readonly #faults: FaultLog;
  readonly #packagers: Packagers<Data>;
  readonly #leaders: Leaders<Data>;
  readonly #lag = new TrackLag();
  readonly #target: TargetDuration;
  readonly #maxSeconds: number;
  readonly #schedule: CutSchedule<Data>;
  #phase: Phase = { kind: 'waiting', cut: undefined, since: undefined };
  #clock: MediaClock = NO_CLOCK;
  /** Set when the segments are to end for good. */
  #onConcluded: (() => void) | undefined;
  /** Starts with the time: ids must differ from those of the stream before, which may be another node's. */
  #nextEvent = Math.floor(Date.now() / 1000);

  constructor(form: PartForm<Data>, options: SegmenterOptions, log: Logger, faults: FaultLog) {
    this.#form = form;
    this.#options = options;
    this.breaks = new Breaks(options.breaks);
    this.#packagers = new Packagers(form, options.past?.inits, log, (track, version) => this.#package(track, version));
    this.#leaders = new Leaders(options.chunkDuration);
    this.#target = new TargetDuration(options.segmentDuration);
    this.#maxSeconds = Math.max(MAX_SEGMENT_SECONDS, 3 * options.segmentDuration);
    const length = new SegmentLength(options.firstSegmentDuration, options.segmentDuration);
    this.#schedule = new CutSchedule(this.#leaders, this.breaks, length, this.#maxSeconds);
    this.#faults = faults;
  }

  /** By track id. */
  get packagers(): ReadonlyMap<number, TrackPackager<Data>> {
    return this.#packagers.all;
  }

  /** Seconds of the longest part that any track can have. */
  get partTarget(): number {
    let longest = 0;
    for (const { partTarget } of this.packagers.values()) longest = Math.max(longest, partTarget);
    return longest;
  }

  /** Seconds, EXT-X-TARGETDURATION. */
  get targetDuration(): number {
    return this.#target.seconds;
  }

  /** Limits of all windows of the stream. */
  get windowLimits(): WindowLimits {
    return {
      segmentCount: this.#options.segmentCount,
      leastSeconds: () => LEAST_TARGETS * this.targetDuration,
    };
  }

  get progress(): PlaylistPosition {
    return { msn: this.#msn, discontinuities: this.#discontinuities, inits: this.#packagers.inits };
  }

  /** Media sequence number of the first segment of which no playlist has named a part. */
  get unannounced(): number {
    const named = [...this.packagers.values()].map(({ window }) => window.next?.msn ?? this.#msn);
    return Math.max(this.#msn, ...named) + 1;
  }

  /** Whether the segments have ended for good. */
  get concluded(): boolean {
    return this.#phase.kind === 'concluded';
  }

  /**
   * Sets the tracks.
   * @param clock arrival times of the media; where unknown, media counts as arriving when it is packaged
   * @returns packagers of new tracks
   */
  setTracks(tracks: readonly Track[], clock: MediaClock = this.#clock): TrackPackager<Data>[] {
    if (this.concluded) return [];
    this.#clock = clock;
    const added = this.#packagers.set(tracks, this.#phase.kind === 'waiting');
    this.#elect();
    if (this.#phase.kind !== 'running') return added;
    if ([...this.packagers.values()].some((packager) => !packager.standIn.hasLeft && !added.includes(packager))) {
      for (const packager of added) packager.start(this.#phase.cut);
    } else {
      this.#phase = TO.end(this.#phase);
    }
    return added;
  }

  /** Ends the growing segments. Later packets follow a discontinuity, unless `conclude` was called. */
  finish(): void {
    if (this.#phase.kind === 'running') {
      for (const packager of this.packagers.values()) packager.finish();
      this.#phase = TO.end(this.#phase);
      this.#elect();
    }
    if (this.#onConcluded === undefined || this.#phase.kind === 'concluded') return;
    this.#phase = TO.conclude(this.#phase);
    this.#onConcluded();
  }

  /**
   * Ends the segments for good.
   * @param urgent ends them now, so that the last ones are shorter; otherwise at the next cut
   * @param onConcluded called once when they have ended, maybe before this returns
   */
  conclude(urgent: boolean, onConcluded: () => void): void {
    this.#onConcluded ??= onConcluded;
    if (urgent || this.#phase.kind !== 'running') this.finish();
  }

  /** Packages a packet; packets of tracks without a packager are ignored. */
  push(packet: Packet): void {
    const { track } = packet;
    if (this.concluded) return;
    if (track.type === 'data') return this.#pushEvent(packet, track);
    const packager = this.packagers.get(track.id);
    if (packager === undefined || !isMedia(track)) return;
    if (this.#phase.kind === 'waiting' && !this.#start(packager, packet, this.#phase)) return;
    packager.arrived(packet, this.#lag.newest);
    const finding = packager.inspect(packet);
    const time = seconds(packet);
    if (finding === 'late') {
      packager.missed(this.#lag.isNear(time));
      this.#faults.count('HLS: dropped a packet that is not later than the one before it or than its segment');
      return;
    }
    const jump = packager.jumps(packet) && !this.#isHole(packager, time);
    if (track.type === 'video') this.#noteKeyFrame(packager, packet.key !== false, time);
    try {
      if (jump || finding === 'changed') this.#break(packager, packet, jump ? 'jump' : 'change');
      else this.#cutWhereDue(packager, packet);
      if (this.concluded) return;
      packager.push(packet);
    } catch (error) {
      this.#countRefusal(error);
    }
    if (packager.awaitsJump) return;
    // stops waiting for tracks that lag too far
    for (const msn of this.#lag.note(time)) for (const one of this.packagers.values()) one.expire(msn);
    this.#replaceMissing();
  }

  /** Replaces missing media, so that players continue: video only if no other video track delivers frames. */
  #replaceMissing(): void {
    const { newest } = this.#lag;
    let videoComes: boolean | undefined;
    for (const packager of this.packagers.values()) {
      const { standIn, track } = packager;
      if (!standIn.isDue(newest)) continue;
      if (track.type === 'video' && (videoComes ??= this.#videoComes(newest))) continue;
      try {
        do {
          const packet = standIn.packet();
          if (packet === undefined) break;
          // no cut in the past, which the other tracks have already passed
          if (!standIn.isDue(newest - packet.duration / track.timebase.den)) this.#cutWhereDue(packager, packet);
          if (this.concluded) return;
          packager.push(packet, true);
        } while (standIn.isDue(newest));
      } catch (error) {
        this.#countRefusal(error);
      }
    }
  }

  #videoComes(newest: number): boolean {
    for (const { track, standIn } of this.packagers.values())
      if (track.type === 'video' && !standIn.isActive && !standIn.isDue(newest)) return true;
    return false;
  }

  #countRefusal(error: unknown): void {
    if (!isRefusal(error)) throw error;
    this.#faults.count(`HLS: dropped a packet that cannot be packaged: ${error.message}`);
  }

  #pushEvent({ dts, pts, data }: Packet, track: DataTrack): void {
    const { timebase } = track;
    const id = this.#nextEvent++ % 2 ** 32;
    const time = toSeconds(pts, timebase);
    this.breaks.note({ id, codec: track.codec, data, time });
    if (!this.#form.carries.has(track.codec)) return;
    const event = { id, track, data, at: toSeconds(dts, timebase), time };
    for (const packager of this.packagers.values()) {
      if (isBeside(track, packager.track.type) && !packager.addEvent(event))
        this.#faults.count('HLS: dropped an event, because too many wait for media');
    }
  }

  #package(track: MediaTrack, initVersion: number): TrackPackager<Data> {
    const limits = {
      ...this.windowLimits,
      chunkDuration: this.#options.chunkDuration,
      videoTarget: () => this.#leaders.videoTarget,
      nextCut: () => this.#schedule.nextFor(packager),
    };
    const packager: TrackPackager<Data> = new TrackPackager(track, limits, this.#form, initVersion);
    packager.window.on('part', () => this.#leaders.notePart(packager));
    packager.window.on('complete', ({ duration }) => this.#target.note(duration));
    return packager;
  }

  /** Starts every track at the leader's first key frame, or at that of another video track if the leader's stays away. */
  #start(packager: TrackPackager<Data>, packet: Packet, phase: Waiting): boolean {
    if (!packet.key) return false;
    const time = seconds(packet);
    if (!this.#leaders.has(packager)) {
      if (packet.track.type !== 'video') return false;
      if (phase.since === undefined) this.#phase = TO.wait(phase, time);
      if (time - (phase.since ?? time) < MAX_LAG_SECONDS) return false;
    }
    this.#lag.start(time);
    // players of the segments before find another timeline
    const gaps = phase.cut === undefined ? (this.#options.past?.gaps ?? 0) : 0;
    const at = { time, slack: packager.frameSeconds, wallTime: this.#wallTimeOf(packet) };
    const cut = firstCut(at, this.#msn + 1, this.#discontinuities + 1, this.#form.range);
    this.#phase = TO.run(phase, cut);
    this.#schedule.start(cut, packet);
    for (const one of this.packagers.values()) {
      if (gaps > 0) one.lead(cut, gaps, this.targetDuration);
      one.start(cut);
    }
    return true;
  }

  /** Number of the newest segment; of the one before the first if there is none. */
  get #msn(): number {
    return this.#phase.cut?.msn ?? this.#options.firstMsn - 1;
  }

  /** Number of discontinuities so far, with those of the stream before; -1 if there was no segment. */
  get #discontinuities(): number {
    return this.#phase.cut?.discontinuities ?? this.#options.past?.discontinuities ?? -1;
  }

  #elect(): void {
    this.#leaders.elect([...this.packagers.values()], this.#lag.horizon);
  }

  #cutWhereDue(packager: TrackPackager<Data>, packet: Packet): void {
    const isFull = this.#schedule.isFull(packager, packet);
    if (packager.behind) {
      if (isFull) packager.advance(packet);
      return;
    }
    if (!isFull && !this.#schedule.isDue(packager, packet)) return;
    this.#cutAll(packager, packet);
    if (!packet.key) packager.advance(packet);
  }

  /** Whether a jump forward is only a gap of this track: it returns to the time of the others. */
  #isHole({ lastTime, awaitsJump }: TrackPackager<Data>, time: number): boolean {
    return !awaitsJump && time > (lastTime ?? time) && this.#lag.isNear(time);
  }

  #break(packager: TrackPackager<Data>, packet: Packet, cause: BreakCause): void {
    const isFirst = !packager.awaitsDiscontinuity;
    packager.break();
    if (!isFirst) return;
    if (cause === 'jump') this.#lag.jump(seconds(packet));
    this.#cutAll(packager, packet, cause);
  }

  #cutAll({ frameSeconds: slack }: TrackPackager<Data>, packet: Packet, cause?: BreakCause): void {
    if (this.#phase.kind !== 'running') return;
    if (this.#onConcluded !== undefined) return this.finish();
    const at = { time: seconds(packet), slack, wallTime: this.#wallTimeOf(packet) };
    const cut = cutAfter(this.#phase.cut, at, cause, this.#form.range);
    this.#phase = TO.run(this.#phase, cut);
    this.#schedule.next(cut, packet);
    this.#lag.expect(cut.msn, cut.time);
    for (const one of this.packagers.values()) one.cut(cut);
  }

  #wallTimeOf(packet: Packet): WallTime {
    const time = toSeconds(packet.pts, packet.track.timebase);
    return new WallTime(this.#clock, time, Date.now(), this.#phase.cut?.wallTime);
  }

  #noteKeyFrame(packager: TrackPackager<Data>, key: boolean, time: number): void {
    const { keyInterval, frameSeconds } = packager;
    const noted = keyInterval.note(key, time, frameSeconds);
    if (key) this.#elect();
    if (noted === undefined || noted.interval > this.#maxSeconds || !this.#leaders.has(packager)) return;
    this.#target.noteInterval(noted.interval, noted.first, frameSeconds);
  }
}

function seconds({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}
