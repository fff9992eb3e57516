import { BitstreamError } from '../codecs/bits.ts';
import { isPackable, UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { isMedia, type MediaTrack, type Track } from '../core/track.ts';
import type { FaultLog, Logger } from '../log.ts';
import type { Anchor, Cut } from './cut.ts';
import { describe } from './description.ts';
import { electLeaders, isFirst } from './leader.ts';
import { TrackPackager } from './track-packager.ts';

export interface SegmenterOptions {
  /** Seconds. */
  readonly chunkDuration: number;
  /** Seconds after which a segment ends at the next key frame. */
  readonly segmentDuration: number;
  /** The same for the first segment, not longer: many players start when it is complete. */
  readonly firstSegmentDuration: number;
  /** Complete segments in a playlist. */
  readonly segmentCount: number;
  /** Media sequence number of the first segment. */
  readonly firstMsn: number;
  /** What a stream has come to that this one continues. */
  readonly past?: Past;
}

/** What must not come again in the playlists of a stream that continues another. */
export interface Past {
  /** EXT-X-DISCONTINUITY-SEQUENCE of its last segment. */
  readonly discontinuities: number;
  /** By track id: the next version of an initialization. */
  readonly inits: ReadonlyMap<number, number>;
  /**
   * Segments in front of the first that may have been told of: nobody knows. They stand in the playlist as gaps, for
   * players to find the way from what they know to what follows.
   */
  readonly gaps: number;
}

/** How far the segments of a stream have come. */
export interface Progress extends Omit<Past, 'gaps'> {
  /** Media sequence number of the newest segment, that may be growing. */
  readonly msn: number;
}

/** A segment without key frames ends here all the same, so that memory stays bounded. */
const MAX_SEGMENT_SECONDS = 30;
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Beyond this the wall clock and the source's clock have parted, and the anchor is set anew. */
const MAX_DRIFT_MS = 1000;
/**
 * So many seconds a track may be behind the others. Then they go on without it: its playlist shows gaps, and it
 * comes back to the segment that the others have come to.
 */
const MAX_LAG_SECONDS = 4;
/**
 * Cuts the tracks of one stream. Segments begin at the key frames of the picture whose key frames are the
 * rarest (or by duration, where there is only sound), and the other tracks follow, each at its own next key
 * frame, so that a media sequence number means the same time, and a discontinuity is the same, on all of them.
 */
export class Segmenter {
  readonly #options: SegmenterOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #packagers = new Map<number, TrackPackager>();
  /** By id: the next version of an initialization, for a track that comes back under the same names. */
  readonly #initVersions: Map<number, number>;
  readonly #refused = new WeakSet<Track>();
  /** Tracks that the log has been told of. */
  readonly #told = new Set<string>();
  readonly #maxSeconds: number;
  #firstMsn: number;
  #leaders: readonly TrackPackager[] = [];
  #started = false;
  #anchor: Anchor = { wall: 0, media: 0 };
  #cut: Cut | undefined;
  /** Cuts that not every track need have reached, and since when they are waited for, in media time. */
  readonly #awaited: { readonly msn: number; since: number }[] = [];
  #shift = 0;
  /** Media time of the newest packet. */
  #newest = -Infinity;
  /** Of the first picture that could not begin the stream. */
  #kept: number | undefined;
  /** Fixed with the leader's first part. */
  #partTarget = 0;
  #targetDuration: number;

  constructor(options: SegmenterOptions, log: Logger, faults: FaultLog) {
    this.#options = options;
    this.#log = log;
    this.#faults = faults;
    this.#firstMsn = options.firstMsn;
    this.#initVersions = new Map(options.past?.inits);
    this.#maxSeconds = Math.max(MAX_SEGMENT_SECONDS, 3 * options.segmentDuration);
    this.#targetDuration = Math.max(1, Math.round(options.segmentDuration));
  }

  get packagers(): ReadonlyMap<number, TrackPackager> {
    return this.#packagers;
  }

  /** Seconds that the longest part of any track can last. */
  get partTarget(): number {
    let longest = 0;
    for (const { partTarget } of this.#packagers.values()) longest = Math.max(longest, partTarget);
    return longest;
  }

  /** EXT-X-TARGETDURATION. It grows only if key frames are further apart than the configuration foresees. */
  get targetDuration(): number {
    return this.#targetDuration;
  }

  get progress(): Progress {
    const inits = new Map(this.#initVersions);
    for (const [id, { init }] of this.#packagers) inits.set(id, init.version + 1);
    return { msn: this.#cut?.msn ?? this.#firstMsn - 1, discontinuities: this.#discontinuities, inits };
  }

  /**
   * Tells which tracks there are.
   * @returns packagers of tracks that are new, by track id
   */
  setTracks(tracks: readonly Track[]): TrackPackager[] {
    for (const [id, packager] of this.#packagers) {
      const track = tracks.find((one) => one.id === id);
      if (track !== undefined && (track === packager.track || this.#canBecome(packager, track))) {
        if (!this.#started) packager.adopt(track as MediaTrack);
        continue;
      }
      this.#packagers.delete(id);
      this.#initVersions.set(id, packager.init.version + 1);
    }
    const added: TrackPackager[] = [];
    for (const track of tracks) {
      if (!isMedia(track) || this.#packagers.has(track.id)) continue;
      const packager = this.#package(track);
      if (packager !== undefined) added.push(packager);
    }
    const known = this.#cut;
    this.#elect();
    if (!this.#started || known === undefined) return added;
    if (this.#packagers.size > added.length) {
      for (const packager of added) packager.start(known, this.#shift);
    } else {
      this.#started = false;
      this.#firstMsn = known.msn + 1;
    }
    return added;
  }

  /**
   * Ends the growing segments: nothing comes any more, or something else does. What is pushed afterwards goes on behind
   * a discontinuity.
   */
  finish(): void {
    const last = this.#cut;
    if (!this.#started || last === undefined) return;
    for (const packager of this.#packagers.values()) packager.finish();
    this.#started = false;
    this.#firstMsn = last.msn + 1;
    this.#newest = -Infinity;
    this.#elect();
  }

  /** Takes a packet of any track; those of tracks it does not package are left out. */
  push(packet: Packet): void {
    const packager = this.#packagers.get(packet.track.id);
    if (packager === undefined || !isMedia(packet.track)) return;
    if (!this.#started && !this.#start(packager, packet)) return;
    const finding = packager.inspect(packet);
    if (finding === 'late') {
      this.#faults.count('HLS: a packet is not later than the one before it, or than its segment, left out');
      return;
    }
    const time = seconds(packet);
    const jump = packager.jumps(packet) && !this.#isHole(packager, time);
    if (packet.track.type === 'video') this.#noteKeyFrame(packager, packet.key, time);
    try {
      if (jump || finding === 'changed') this.#break(packager, packet, jump);
      else this.#cutWhereDue(packager, packet);
      packager.push(packet);
    } catch (error) {
      if (!(error instanceof BitstreamError || error instanceof UnsupportedTrackError)) throw error;
      this.#faults.count(`HLS: a packet cannot be packaged, left out: ${error.message}`);
    }
    if (!packager.awaitsJump) this.#goOn(time);
  }

  #package(track: MediaTrack): TrackPackager | undefined {
    return this.#tried(track, () => {
      const { segmentCount, chunkDuration } = this.#options;
      const limits = { segmentCount, chunkDuration, pictureTarget: () => this.#partTarget || this.#pictureTarget() };
      const packager = new TrackPackager(track, limits, this.#initVersions.get(track.id) ?? 0);
      packager.window.on('part', () => {
        if (packager === this.#leaders[0]) this.#partTarget ||= this.#pictureTarget();
      });
      packager.window.on('complete', ({ duration }) => this.#noteSegment(duration));
      this.#packagers.set(track.id, packager);
      return packager;
    });
  }

  /** Whether a packager can go on with another configuration of its track. */
  #canBecome({ track: { type }, init: { version } }: TrackPackager, track: Track): boolean {
    if (!isMedia(track) || track.type !== type) return false;
    return this.#tried(track, () => describe(track, version)) !== undefined;
  }

  /** What `make` answers for a track that has a place here; undefined, with one line in the log, for another. */
  #tried<T>(track: MediaTrack, make: () => T): T | undefined {
    if (this.#refused.has(track)) return undefined;
    try {
      if (!isPackable(track)) throw new UnsupportedTrackError(`${track.codec} has no place in HLS`);
      return make();
    } catch (error) {
      if (!(error instanceof BitstreamError || error instanceof UnsupportedTrackError)) throw error;
      this.#refused.add(track);
      const { id, codec } = track;
      if (this.#told.has(`${id} ${codec}`)) return undefined;
      this.#told.add(`${id} ${codec}`);
      this.#log.warn({ track: id, codec, reason: error.message }, 'HLS leaves a track out');
      return undefined;
    }
  }

  /** The first key frame of the leader starts every track; that of another picture, when the leader does not come. */
  #start(packager: TrackPackager, packet: Packet): boolean {
    if (!packet.key) return false;
    const time = seconds(packet);
    if (!this.#leaders.includes(packager)) {
      if (packet.track.type !== 'video') return false;
      this.#kept ??= time;
      if (time - this.#kept < MAX_LAG_SECONDS) return false;
      this.#leaders = [packager];
    }
    this.#started = true;
    this.#kept = undefined;
    this.#newest = time;
    this.#awaited.length = 0;
    this.#shift = shiftFor(time);
    this.#anchor = { wall: Date.now(), media: presentation(packet) };
    // whoever played what was there before finds another timeline
    const gaps = this.#cut === undefined ? (this.#options.past?.gaps ?? 0) : 0;
    const discontinuities = this.#discontinuities + 1;
    const { frameSeconds: slack } = packager;
    const common = { time, slack, discontinuity: false, jump: false, discontinuities, anchor: this.#anchor };
    this.#cut = { msn: this.#firstMsn, ...common };
    for (const one of this.#packagers.values()) {
      if (gaps > 0) one.lead(this.#cut, gaps, this.#targetDuration);
      one.start(this.#cut, this.#shift);
    }
    return true;
  }

  /** Of the stream so far, those of the past included; -1 when there was no segment before. */
  get #discontinuities(): number {
    return this.#cut?.discontinuities ?? this.#options.past?.discontinuities ?? -1;
  }

  #elect(): void {
    this.#leaders = electLeaders([...this.#packagers.values()], this.#newest - MAX_LAG_SECONDS);
  }

  #cutWhereDue(packager: TrackPackager, packet: Packet): void {
    const elapsed = packager.elapsed(packet);
    const full = elapsed >= this.#maxSeconds || packager.openBytes + packet.data.length > MAX_SEGMENT_BYTES;
    if (packager.behind) {
      if (full) packager.advance(packet);
      return;
    }
    if (!full) {
      if (!packet.key || !isFirst(packager, seconds(packet), this.#leaders)) return;
      const { segmentDuration, firstSegmentDuration } = this.#options;
      const wanted = packager.msn === this.#firstMsn ? firstSegmentDuration : segmentDuration;
      if (elapsed < wanted - packager.tolerance) return;
      this.#checkDrift(packet);
    }
    this.#cutAll(packager, seconds(packet));
    if (!packet.key) packager.advance(packet);
  }

  /** A track that was away comes back to where the others are. */
  #isHole({ lastTime, awaitsJump }: TrackPackager, time: number): boolean {
    return !awaitsJump && time > (lastTime ?? time) && Math.abs(time - this.#newest) < MAX_LAG_SECONDS;
  }

  #break(packager: TrackPackager, packet: Packet, jump: boolean): void {
    const time = seconds(packet);
    this.#shift = shiftFor(time);
    if (!packager.awaitsDiscontinuity) {
      this.#anchor = { wall: Date.now(), media: presentation(packet) };
      if (jump) {
        this.#newest = time;
        for (const cut of this.#awaited) cut.since = time;
      }
      this.#cutAll(packager, time, jump ? 'jump' : 'change');
    }
    packager.break(this.#shift);
  }

  #cutAll({ frameSeconds: slack }: TrackPackager, time: number, why?: 'jump' | 'change'): void {
    const { msn, discontinuities } = this.#cut as Cut;
    const discontinuity = why !== undefined;
    this.#cut = {
      msn: msn + 1,
      time,
      slack,
      discontinuity,
      jump: why === 'jump',
      discontinuities: discontinuities + (discontinuity ? 1 : 0),
      anchor: this.#anchor,
    };
    this.#awaited.push({ msn: msn + 1, since: time });
    for (const packager of this.#packagers.values()) packager.cut(this.#cut);
  }

  /** Who is too far behind by now is not waited for. */
  #goOn(time: number): void {
    if (time <= this.#newest) return;
    this.#newest = time;
    for (let cut = this.#awaited[0]; cut !== undefined && cut.since < time - MAX_LAG_SECONDS; cut = this.#awaited[0]) {
      this.#awaited.shift();
      for (const packager of this.#packagers.values()) packager.expire(cut.msn);
    }
  }

  #checkDrift(packet: Packet): void {
    const media = presentation(packet);
    const wall = Date.now();
    const expected = this.#anchor.wall + (media - this.#anchor.media) * 1000;
    if (Math.abs(wall - expected) > MAX_DRIFT_MS) this.#anchor = { wall, media };
  }

  /** Seconds that parts of the leader's picture last; what is configured, where there is none. */
  #pictureTarget(): number {
    const [leader] = this.#leaders;
    return leader === undefined || leader.track.type !== 'video' ? this.#options.chunkDuration : leader.target;
  }

  /** Key frames that do not fit SegmentDuration make segments longer: the target must say so early. */
  #noteKeyFrame(packager: TrackPackager, key: boolean, time: number): void {
    const { keyInterval, frameSeconds } = packager;
    const noted = keyInterval.note(key, time, frameSeconds);
    if (key) this.#elect();
    if (noted === undefined || noted.interval > this.#maxSeconds || !this.#leaders.includes(packager)) return;
    const { interval, first } = noted;
    const { segmentDuration } = this.#options;
    if (interval > segmentDuration) this.#noteSegment(interval);
    else if (first) this.#noteSegment(Math.ceil((segmentDuration - frameSeconds) / interval) * interval);
  }

  #noteSegment(duration: number): void {
    this.#targetDuration = Math.max(this.#targetDuration, Math.round(duration));
  }
}

/** Whole seconds that make a time positive: decode times in MP4 know no sign. */
function shiftFor(time: number): number {
  return time >= 0 ? 0 : Math.ceil(-time);
}

function seconds({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}

function presentation({ pts, track }: Packet): number {
  return toSeconds(pts, track.timebase);
}
