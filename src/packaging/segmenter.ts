import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { isBeside, isMedia, type DataTrack, type MediaTrack, type Track } from '../core/track.ts';
import type { FaultLog, Logger } from '../log/log.ts';
import { Breaks } from './breaks.ts';
import type { Cut } from './cut.ts';
import { Lag, MAX_LAG_SECONDS } from './lag.ts';
import { electLeaders, isFirst } from './leader.ts';
import { isCarried } from './part-events.ts';
import type { PartForm } from './part-form.ts';
import type { Past, Progress } from './past.ts';
import { isRefusal, Refusals } from './refusals.ts';
import { SegmentLength } from './segment-length.ts';
import { TargetDuration } from './target-duration.ts';
import { TrackPackager } from './track-packager.ts';
import { WallTime, type MediaClock } from './wall-time.ts';

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
  readonly past?: Past;
}

/** Seconds after which a segment ends without a key frame, to bound memory. */
export const MAX_SEGMENT_SECONDS = 30;
/** Seconds of the shortest segment that a splice may cut. */
const LEAST_SECONDS = 0.2;
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Target durations that a playlist keeps at least when it drops a segment (RFC 8216 6.2.2). */
const LEAST_TARGETS = 3;
const NO_CLOCK: MediaClock = { at: () => Infinity };

/**
 * Cuts the tracks of one stream. Segments begin at key frames of the video track that has the rarest (or by duration,
 * if there is only audio). The other tracks follow, each at its own next key frame, so that media sequence numbers and
 * discontinuities agree on all tracks.
 */
export class Segmenter<Data = Buffer> {
  readonly #form: PartForm<Data>;
  readonly #options: SegmenterOptions;
  readonly #faults: FaultLog;
  readonly #packagers = new Map<number, TrackPackager<Data>>();
  /** Next version of an initialization, by track id: a track that returns reuses its file names. */
  readonly #initVersions: Map<number, number>;
  readonly #refusals: Refusals;
  readonly #lag = new Lag();
  readonly #target: TargetDuration;
  readonly #maxSeconds: number;
  readonly #length: SegmentLength;
  #firstMsn: number;
  #leaders: readonly TrackPackager<Data>[] = [];
  #started = false;
  #clock: MediaClock = NO_CLOCK;
  #cut: Cut | undefined;
  /** Seconds from the decode time of the newest cut to its presentation time. */
  #reordering = 0;
  /** Media time of the first key frame that waits for the leader's, in seconds. */
  #waitingSince: number | undefined;
  readonly breaks = new Breaks();
  /** Seconds of video parts, fixed with the leader's first part; 0 before. */
  #partTarget = 0;
  #onConcluded: (() => void) | undefined;
  #concluded = false;
  /** Starts with the time: ids must differ from those of the stream before, which may be another node's. */
  #nextEvent = Math.floor(Date.now() / 1000);

  constructor(form: PartForm<Data>, options: SegmenterOptions, log: Logger, faults: FaultLog) {
    this.#form = form;
    this.#options = options;
    this.#refusals = new Refusals(log);
    this.#target = new TargetDuration(options.segmentDuration);
    this.#length = new SegmentLength(options.firstSegmentDuration, options.segmentDuration);
    this.#faults = faults;
    this.#firstMsn = options.firstMsn;
    this.#initVersions = new Map(options.past?.inits);
    this.#maxSeconds = Math.max(MAX_SEGMENT_SECONDS, 3 * options.segmentDuration);
  }

  get packagers(): ReadonlyMap<number, TrackPackager<Data>> {
    return this.#packagers;
  }

  /** Seconds of the longest part that any track can have. */
  get partTarget(): number {
    let longest = 0;
    for (const { partTarget } of this.#packagers.values()) longest = Math.max(longest, partTarget);
    return longest;
  }

  /** Seconds, EXT-X-TARGETDURATION. */
  get targetDuration(): number {
    return this.#target.seconds;
  }

  get progress(): Progress {
    const inits = new Map(this.#initVersions);
    for (const [id, { init }] of this.#packagers) inits.set(id, init.version + 1);
    return { msn: this.#cut?.msn ?? this.#firstMsn - 1, discontinuities: this.#discontinuities, inits };
  }

  /**
   * Sets the tracks. A track that has left and that players need stays, as if it paused: a server keeps the renditions that
   * it announced (RFC 8216bis 6.2.1).
   * @param clock arrival times of the media; where unknown, media counts as arriving when it is packaged
   * @returns packagers of new tracks
   */
  setTracks(tracks: readonly Track[], clock: MediaClock = this.#clock): TrackPackager<Data>[] {
    if (this.#concluded) return [];
    this.#clock = clock;
    for (const [id, packager] of this.#packagers) {
      const track = tracks.find((one) => one.id === id);
      if (
        track === undefined ? livesOn(packager, tracks) : track === packager.track || this.#canBecome(packager, track)
      ) {
        packager.standIn.stay(track !== undefined);
        if (!this.#started && track !== undefined) packager.adopt(track as MediaTrack);
        continue;
      }
      this.#packagers.delete(id);
      this.#initVersions.set(id, packager.init.version + 1);
    }
    const added: TrackPackager<Data>[] = [];
    for (const track of tracks) {
      if (!isMedia(track) || this.#packagers.has(track.id)) continue;
      const packager = this.#package(track);
      if (packager !== undefined) added.push(packager);
    }
    const known = this.#cut;
    this.#elect();
    if (!this.#started || known === undefined) return added;
    if ([...this.#packagers.values()].some((packager) => !packager.standIn.hasLeft && !added.includes(packager))) {
      for (const packager of added) packager.start(known);
    } else {
      this.#started = false;
      this.#firstMsn = known.msn + 1;
    }
    return added;
  }

  /** Whether the segments have ended for good: packets and new tracks are ignored. */
  get concluded(): boolean {
    return this.#concluded;
  }

  /**
   * Ends the growing segments. Later packets follow a discontinuity, unless `conclude` was called.
   */
  finish(): void {
    const last = this.#cut;
    if (this.#started && last !== undefined) {
      for (const packager of this.#packagers.values()) packager.finish();
      this.#started = false;
      this.#firstMsn = last.msn + 1;
      this.#lag.finish();
      this.#elect();
    }
    if (this.#onConcluded === undefined || this.#concluded) return;
    this.#concluded = true;
    this.#onConcluded();
  }

  /**
   * Ends the segments for good.
   * @param urgent ends them now, so that the last ones are shorter; otherwise at the next cut
   * @param onConcluded called once when they have ended, maybe before this returns
   */
  conclude(urgent: boolean, onConcluded: () => void): void {
    this.#onConcluded ??= onConcluded;
    if (urgent || !this.#started) this.finish();
  }

  /** Packages a packet; packets of tracks without a packager are ignored. */
  push(packet: Packet): void {
    const { track } = packet;
    if (this.#concluded) return;
    if (track.type === 'data') return this.#pushEvent(packet, track);
    const packager = this.#packagers.get(track.id);
    if (packager === undefined || !isMedia(track)) return;
    if (!this.#started && !this.#start(packager, packet)) return;
    packager.arrived(packet, this.#lag.newest);
    const finding = packager.inspect(packet);
    if (finding === 'late') {
      packager.missed(this.#lag.isNear(seconds(packet)));
      this.#faults.count('HLS: dropped a packet that is not later than the one before it or than its segment');
      return;
    }
    const time = seconds(packet);
    const jump = packager.jumps(packet) && !this.#isHole(packager, time);
    if (track.type === 'video') this.#noteKeyFrame(packager, packet.key !== false, time);
    try {
      if (jump || finding === 'changed') this.#break(packager, packet, jump);
      else this.#cutWhereDue(packager, packet);
      if (this.#concluded) return;
      packager.push(packet);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#faults.count(`HLS: dropped a packet that cannot be packaged: ${error.message}`);
    }
    if (packager.awaitsJump) return;
    this.#expireLate(time);
    this.#standIn();
  }

  /** Replaces missing media, so that players continue: video only if no other video track delivers frames. */
  #standIn(): void {
    const { newest } = this.#lag;
    let videoComes: boolean | undefined;
    for (const packager of this.#packagers.values()) {
      if (!packager.standIn.isDue(newest)) continue;
      if (packager.track.type === 'video' && (videoComes ??= this.#videoComes(newest))) continue;
      try {
        do {
          const packet = packager.standIn.packet();
          if (packet === undefined) break;
          // no cut in the past, which the other tracks have already passed
          if (!packager.standIn.isDue(newest - packet.duration / packager.track.timebase.den))
            this.#cutWhereDue(packager, packet);
          if (this.#concluded) return;
          packager.push(packet, true);
        } while (packager.standIn.isDue(newest));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        this.#faults.count(`HLS: dropped a packet that cannot be packaged: ${error.message}`);
      }
    }
  }

  #videoComes(newest: number): boolean {
    for (const one of this.#packagers.values())
      if (one.track.type === 'video' && !one.standIn.isActive && !one.standIn.isDue(newest)) return true;
    return false;
  }

  #pushEvent({ dts, pts, data }: Packet, track: DataTrack): void {
    const { timebase } = track;
    const id = this.#nextEvent++ % 2 ** 32;
    const time = toSeconds(pts, timebase);
    this.breaks.note({ id, codec: track.codec, data, time });
    if (!isCarried(track)) return;
    const event = { id, track, data, at: toSeconds(dts, timebase), time };
    for (const packager of this.#packagers.values()) {
      if (isBeside(track, packager.track.type) && !packager.addEvent(event))
        this.#faults.count('HLS: dropped an event, because too many wait for media');
    }
  }

  #package(track: MediaTrack): TrackPackager<Data> | undefined {
    return this.#refusals.tried(track, () => {
      const { segmentCount, chunkDuration } = this.#options;
      const limits = {
        segmentCount,
        leastSeconds: () => LEAST_TARGETS * this.targetDuration,
        chunkDuration,
        videoTarget: () => this.#partTarget || this.#videoTarget(),
        nextCut: () => this.#nextCut(packager),
      };
      const packager: TrackPackager<Data> = new TrackPackager(
        track,
        limits,
        this.#form,
        this.#initVersions.get(track.id) ?? 0,
      );
      packager.window.on('part', () => {
        if (packager === this.#leaders[0]) this.#partTarget ||= this.#videoTarget();
      });
      packager.window.on('complete', ({ duration }) => this.#target.note(duration));
      this.#packagers.set(track.id, packager);
      return packager;
    });
  }

  #canBecome({ track: { type }, init: { version } }: TrackPackager<Data>, track: Track): boolean {
    if (!isMedia(track) || track.type !== type) return false;
    return this.#refusals.tried(track, () => this.#form.describe(track, version)) !== undefined;
  }

  /** Starts every track at the leader's first key frame, or at that of another video track if the leader's stays away. */
  #start(packager: TrackPackager<Data>, packet: Packet): boolean {
    if (!packet.key) return false;
    const time = seconds(packet);
    if (!this.#leaders.includes(packager)) {
      if (packet.track.type !== 'video') return false;
      this.#waitingSince ??= time;
      if (time - this.#waitingSince < MAX_LAG_SECONDS) return false;
      this.#leaders = [packager];
    }
    this.#started = true;
    this.#waitingSince = undefined;
    this.#lag.start(time);
    this.#length.restart();
    // players of the segments before find another timeline
    const gaps = this.#cut === undefined ? (this.#options.past?.gaps ?? 0) : 0;
    const discontinuities = this.#discontinuities + 1;
    const { frameSeconds: slack } = packager;
    this.#cut = {
      msn: this.#firstMsn,
      time,
      slack,
      discontinuity: false,
      jump: false,
      discontinuities,
      wallTime: this.#wallTimeOf(packet),
      shift: shiftFor(time, this.#form.range),
    };
    this.#beginBreaks(packet, true);
    for (const one of this.#packagers.values()) {
      if (gaps > 0) one.lead(this.#cut, gaps, this.targetDuration);
      one.start(this.#cut);
    }
    return true;
  }

  /** Number of discontinuities so far, with those of the stream before; -1 if there was no segment. */
  get #discontinuities(): number {
    return this.#cut?.discontinuities ?? this.#options.past?.discontinuities ?? -1;
  }

  #elect(): void {
    this.#leaders = electLeaders([...this.#packagers.values()], this.#lag.horizon);
  }

  #cutWhereDue(packager: TrackPackager<Data>, packet: Packet): void {
    const elapsed = packager.elapsed(packet);
    const full = elapsed >= this.#maxSeconds || packager.openBytes + packet.data.length > MAX_SEGMENT_BYTES;
    if (packager.behind) {
      if (full) packager.advance(packet);
      return;
    }
    if (!full) {
      if (!packet.key || !isFirst(packager, seconds(packet), this.#leaders)) return;
      if (elapsed < this.#length.seconds - packager.tolerance && !this.#isBreak(packager, packet, elapsed)) return;
    }
    this.#cutAll(packager, packet);
    if (!packet.key) packager.advance(packet);
  }

  #isBreak({ frameSeconds }: TrackPackager<Data>, packet: Packet, elapsed: number): boolean {
    return elapsed >= LEAST_SECONDS && this.breaks.isDue(presentation(packet), frameSeconds);
  }

  /**
   * Media time from which a frame of a track, or a key frame of a leader, is expected to begin a segment, in seconds;
   * undefined if the leaders' key frames are irregular.
   */
  #nextCut(packager: TrackPackager<Data>): number | undefined {
    if (this.#cut === undefined) return undefined;
    const { time } = this.#cut;
    const earliest = (leader: TrackPackager<Data>): number => {
      // assumes the same delay from decoding to presentation as at the cut
      const due = this.breaks.dueAt(leader.frameSeconds) - this.#reordering;
      return Math.min(time + this.#length.seconds - leader.tolerance, Math.max(time + LEAST_SECONDS, due));
    };
    if (this.#leaders.includes(packager)) return earliest(packager);
    for (const leader of this.#leaders) {
      const due = leader.track.type === 'audio' ? earliest(leader) : leader.keyInterval.due(earliest(leader));
      if (due !== undefined) return due - packager.frameSeconds / 2;
    }
    return undefined;
  }

  /** Whether a jump forward is only a gap of this track: it returns to the time of the others. */
  #isHole({ lastTime, awaitsJump }: TrackPackager<Data>, time: number): boolean {
    return !awaitsJump && time > (lastTime ?? time) && this.#lag.isNear(time);
  }

  #break(packager: TrackPackager<Data>, packet: Packet, jump: boolean): void {
    const isFirst = !packager.awaitsDiscontinuity;
    packager.break();
    if (!isFirst) return;
    if (jump) this.#lag.jump(seconds(packet));
    this.#cutAll(packager, packet, jump ? 'jump' : 'change');
  }

  #cutAll({ frameSeconds: slack }: TrackPackager<Data>, packet: Packet, why?: 'jump' | 'change'): void {
    if (this.#onConcluded !== undefined) return this.finish();
    const { msn, discontinuities, time: begun, shift } = this.#cut as Cut;
    const time = seconds(packet);
    this.#length.end(time - begun);
    const isOver = time + shift >= this.#form.range;
    const discontinuity = why !== undefined || isOver;
    this.#cut = {
      msn: msn + 1,
      time,
      slack,
      discontinuity,
      jump: why === 'jump',
      discontinuities: discontinuities + (discontinuity ? 1 : 0),
      wallTime: this.#wallTimeOf(packet),
      shift: why === 'jump' || isOver ? shiftFor(time, this.#form.range) : shift,
    };
    this.#beginBreaks(packet, why === 'jump');
    this.#lag.expect(msn + 1, time);
    for (const packager of this.#packagers.values()) packager.cut(this.#cut);
  }

  #beginBreaks(packet: Packet, anew: boolean): void {
    const time = presentation(packet);
    this.#reordering = time - seconds(packet);
    this.breaks.cut(this.#cut as Cut, time, anew);
  }

  #wallTimeOf(packet: Packet): WallTime {
    return new WallTime(this.#clock, presentation(packet), Date.now(), this.#cut?.wallTime);
  }

  /** Stops waiting for tracks that lag too far. */
  #expireLate(time: number): void {
    for (const msn of this.#lag.note(time)) {
      for (const packager of this.#packagers.values()) packager.expire(msn);
    }
  }

  /** Seconds of the leader's video parts; the configured duration without video. */
  #videoTarget(): number {
    const [leader] = this.#leaders;
    return leader === undefined || leader.track.type !== 'video' ? this.#options.chunkDuration : leader.target;
  }

  #noteKeyFrame(packager: TrackPackager<Data>, key: boolean, time: number): void {
    const { keyInterval, frameSeconds } = packager;
    const noted = keyInterval.note(key, time, frameSeconds);
    if (key) this.#elect();
    if (noted === undefined || noted.interval > this.#maxSeconds || !this.#leaders.includes(packager)) return;
    this.#target.noteInterval(noted.interval, noted.first, frameSeconds);
  }
}

/** Whether players need a track that has left: audio, and video if there is no other. */
function livesOn<Data>({ track, window }: TrackPackager<Data>, tracks: readonly Track[]): boolean {
  if (window.last === undefined || !tracks.some(isMedia)) return false;
  return track.type === 'audio' || tracks.every(({ type }) => type !== 'video');
}

/** Whole seconds that move a time into a range from 0: decode times in MP4 are unsigned. */
function shiftFor(time: number, range: number): number {
  if (time < 0) return Math.ceil(-time);
  return time < range ? 0 : -Math.floor(time / range) * range;
}

function seconds({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}

function presentation({ pts, track }: Packet): number {
  return toSeconds(pts, track.timebase);
}
