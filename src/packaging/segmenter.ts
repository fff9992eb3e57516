import { BitstreamError } from '../codecs/bits.ts';
import { isPackable, UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { isMedia, type MediaTrack, type Track } from '../core/track.ts';
import type { FaultLog, Logger } from '../log.ts';
import { describe, HAIR_SECONDS, MIN_PART_SHARE, TrackPackager, type Anchor, type Cut } from './track-packager.ts';

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
}

/** A segment without key frames ends here all the same, so that memory stays bounded. */
const MAX_SEGMENT_SECONDS = 30;
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Beyond this the wall clock and the source's clock have parted, and the anchor is set anew. */
const MAX_DRIFT_MS = 1000;
/** Share of a frame that parts may last longer than asked, where that makes whole frames fit. */
const ROUND_UP = 0.1;

/**
 * Cuts the tracks of one stream. One track leads: segments begin at its key frames (or by duration,
 * where there is only sound), and the others follow, so that a media sequence number means the same
 * time, and a discontinuity is the same, on all of them.
 */
export class Segmenter {
  readonly #options: SegmenterOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #packagers = new Map<number, TrackPackager>();
  /** By id: the next version of an initialization, for a track that comes back under the same names. */
  readonly #initVersions = new Map<number, number>();
  readonly #refused = new WeakSet<Track>();
  /** Tracks that the log has been told of. */
  readonly #told = new Set<string>();
  readonly #maxSeconds: number;
  #firstMsn: number;
  #leader: TrackPackager | undefined;
  #started = false;
  #anchor: Anchor = { wall: 0, media: 0 };
  #cut: Cut | undefined;
  #shift = 0;
  /** Fixed with the leader's first part. */
  #partTarget = 0;
  #targetDuration: number;
  #lastKey = -Infinity;
  #firstInterval: number | undefined;

  constructor(options: SegmenterOptions, log: Logger, faults: FaultLog) {
    this.#options = options;
    this.#log = log;
    this.#faults = faults;
    this.#firstMsn = options.firstMsn;
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

  /**
   * Tells which tracks there are.
   * @returns packagers of tracks that are new, by track id
   */
  setTracks(tracks: readonly Track[]): TrackPackager[] {
    for (const [id, packager] of this.#packagers) {
      const track = tracks.find((one) => one.id === id);
      if (track !== undefined && (track === packager.track || this.#canBecome(packager, track))) continue;
      this.#packagers.delete(id);
      this.#initVersions.set(id, packager.init.version + 1);
    }
    const added: TrackPackager[] = [];
    for (const track of tracks) {
      if (!isMedia(track) || this.#packagers.has(track.id)) continue;
      const packager = this.#package(track);
      if (packager !== undefined) added.push(packager);
    }
    const all = [...this.#packagers.values()];
    const leader = all.find(({ track }) => track.type === 'video') ?? all[0];
    const known = this.#leader;
    this.#leader = leader;
    if (!this.#started || known === undefined) return added;
    if (this.#cut !== undefined && all.length > added.length) {
      for (const packager of added) packager.start(known.msn, this.#cut, this.#shift);
    } else {
      this.#started = false;
      this.#firstMsn = known.msn + 1;
    }
    return added;
  }

  /** Takes a packet of any track; those of tracks it does not package are left out. */
  push(packet: Packet): void {
    const packager = this.#packagers.get(packet.track.id);
    if (packager === undefined || !isMedia(packet.track)) return;
    if (!this.#started && !this.#start(packager, packet)) return;
    if (packager === this.#leader && packet.key && packet.track.type === 'video') this.#noteKeyFrame(packet);
    const finding = packager.inspect(packet);
    if (finding === 'late') {
      this.#faults.count('HLS: a packet is not later than the one before it, left out');
      return;
    }
    try {
      if (finding === 'discontinuity') this.#break(packager, packet);
      else if (this.#due(packager, packet)) this.#cutAt(packager, packet, !packet.key || packager !== this.#leader);
      packager.push(packet);
    } catch (error) {
      if (!(error instanceof BitstreamError || error instanceof UnsupportedTrackError)) throw error;
      this.#faults.count(`HLS: a packet cannot be packaged, left out: ${error.message}`);
    }
  }

  #package(track: MediaTrack): TrackPackager | undefined {
    return this.#tried(track, () => {
      const limits = {
        segmentCount: this.#options.segmentCount,
        partTarget: () => this.#partTarget || this.#fittingTarget(),
      };
      const packager = new TrackPackager(track, limits, this.#initVersions.get(track.id) ?? 0);
      packager.window.on('part', () => {
        if (packager === this.#leader) this.#partTarget ||= this.#fittingTarget();
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

  /** The first key frame of the leader starts every track. */
  #start(packager: TrackPackager, packet: Packet): boolean {
    if (packager !== this.#leader || !packet.key) return false;
    const time = seconds(packet);
    this.#started = true;
    this.#shift = shiftFor(time);
    this.#anchor = { wall: Date.now(), media: presentation(packet) };
    this.#cut = { time, discontinuity: false, forced: false, anchor: this.#anchor };
    for (const one of this.#packagers.values()) one.start(this.#firstMsn, this.#cut, this.#shift);
    return true;
  }

  #due(packager: TrackPackager, packet: Packet): boolean {
    const elapsed = packager.elapsed(packet);
    if (elapsed >= this.#maxSeconds || packager.openBytes + packet.data.length > MAX_SEGMENT_BYTES) return true;
    if (packager !== this.#leader || !packet.key) return false;
    const tolerance = packager.track.type === 'video' ? packager.frameSeconds : HAIR_SECONDS;
    const { segmentDuration, firstSegmentDuration } = this.#options;
    const wanted = packager.msn === this.#firstMsn ? firstSegmentDuration : segmentDuration;
    return elapsed >= wanted - tolerance;
  }

  #break(packager: TrackPackager, packet: Packet): void {
    const time = seconds(packet);
    this.#shift = shiftFor(time);
    if (!packager.awaitsDiscontinuity) {
      this.#anchor = { wall: Date.now(), media: presentation(packet) };
      this.#cutAll({ time, discontinuity: true, forced: true, anchor: this.#anchor });
    }
    packager.break(this.#shift);
  }

  #cutAt(packager: TrackPackager, packet: Packet, forced: boolean): void {
    if (packager === this.#leader) this.#checkDrift(packet);
    this.#cutAll({ time: seconds(packet), discontinuity: false, forced, anchor: this.#anchor });
  }

  #cutAll(cut: Cut): void {
    this.#cut = cut;
    for (const packager of this.#packagers.values()) packager.cut(cut);
  }

  #checkDrift(packet: Packet): void {
    const media = presentation(packet);
    const wall = Date.now();
    const expected = this.#anchor.wall + (media - this.#anchor.media) * 1000;
    if (Math.abs(wall - expected) > MAX_DRIFT_MS) this.#anchor = { wall, media };
  }

  /** The nearest to ChunkDuration that whole frames of the leader fill. */
  #fittingTarget(): number {
    const { chunkDuration } = this.#options;
    const leader = this.#leader;
    if (leader === undefined || leader.track.type !== 'video') return chunkDuration;
    const frame = leader.frameSeconds;
    const fitting = Math.max(1, Math.floor(chunkDuration / frame + ROUND_UP)) * frame;
    return fitting > chunkDuration || fitting < MIN_PART_SHARE * chunkDuration ? fitting : chunkDuration;
  }

  /** Key frames that do not fit SegmentDuration make segments longer: the target must say so early. */
  #noteKeyFrame(packet: Packet): void {
    const time = seconds(packet);
    const interval = time - this.#lastKey;
    this.#lastKey = time;
    if (!(interval > 0 && interval <= this.#maxSeconds)) return;
    const { segmentDuration } = this.#options;
    const frame = this.#leader?.frameSeconds ?? 0;
    if (interval > segmentDuration) this.#noteSegment(interval);
    else if (this.#firstInterval === undefined) this.#noteSegment(Math.ceil((segmentDuration - frame) / interval) * interval);
    this.#firstInterval ??= interval;
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
