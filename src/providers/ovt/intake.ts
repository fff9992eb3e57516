import { BitstreamError } from '../../codecs/bits.ts';
import { freeId } from '../../core/event-tracks.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import { rescale, toSeconds, type Timebase } from '../../core/timebase.ts';
import { isMedia, sameFormat, type DataTrack, type Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import type { WireDescription } from '../../protocols/ovt/description.ts';
import { OvtError } from '../../protocols/ovt/error.ts';
import type { Frame } from '../../protocols/ovt/media.ts';
import { playlistOf, trackOf } from '../../protocols/ovt/tracks.ts';
import { eventTarget } from '../../protocols/ovt/wire-form.ts';
import { DecodeLead } from '../intake/decode-lead.ts';
import { trackSource, type SourceUnit, type TrackSource } from './track-source.ts';

export interface IntakeSink {
  /** Called before the first packet, and after each change. */
  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void;
  packet(packet: Packet): void;
}

/** Clock of a stream that arrives over successive connections. */
export interface IntakeClock {
  /**
   * Begins the times of another connection, or of another run on the same one.
   * @param run id given by the origin
   */
  restart(run: string | undefined): void;
  /** Whether a packet is earlier than the beginning of the connection. Times are those of `next`. */
  precedes(track: number, time: number, source: Timebase): boolean;
  /**
   * Decoding time of a packet, in ticks of its track; undefined if an earlier connection delivered it.
   * @param time as the origin counts, in ticks of `source`
   * @param samples in an audio frame, since audio frames follow each other exactly; 0 for everything else
   * @param now of the monotonic clock, in milliseconds
   */
  next(
    track: number,
    time: number,
    source: Timebase,
    timebase: Timebase,
    samples: number,
    now: number,
  ): number | undefined;
}

export interface Received {
  readonly run: string;
  readonly tracks: readonly Track[];
}

export interface IntakeOptions {
  readonly clock: IntakeClock;
  readonly faults: FaultLog;
  /** Whether the origin is a node of this cluster: frames are in canonical form. */
  readonly plain: boolean;
  /** Tracks of the same run with equal descriptions stay as they are. */
  readonly before?: Received;
}

interface Entry {
  readonly described: Track;
  readonly source: TrackSource;
  /** undefined for nodes of this cluster, whose decoding times need no correction. */
  readonly lead: DecodeLead | undefined;
}

/** Wait for tracks whose description is incomplete. */
const MAX_WAIT_MS = 4000;
/** Wait for silent tracks once another has begun. */
const SILENT_WAIT_MS = 1000;
const MAX_HELD = 1024;
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** Frame that arrived before the tracks were known; without units when a frame of the track was lost. */
interface Held {
  readonly entry: Entry;
  readonly frame: Frame;
  readonly units: readonly SourceUnit[] | undefined;
  readonly now: number;
}

const MAX_REORDER_SECONDS = 10;

/**
 * Converts descriptions and frames of an origin to tracks and packets. Video begins, and resumes after a loss, with a
 * key frame.
 */
export class Intake {
  readonly #sink: IntakeSink;
  readonly #options: IntakeOptions;
  #entries = new Map<number, Entry>();
  /** Tracks for events that name their target tracks themselves, where their description does not. */
  #targeted: readonly { readonly from: DataTrack; readonly track: DataTrack }[] = [];
  #playlists: readonly Playlist[] = [];
  #announced: readonly Track[] = [];
  #gate: KeyGate | undefined;
  #waitingSince: number | undefined;
  /** Tracks that have begun: others are not announced, unless the origin is a node, which announces only such tracks. */
  readonly #present = new Set<number>();
  #held: Held[] = [];
  #heldBytes = 0;
  #run: string | undefined;

  /** @throws OvtError when no track is supported */
  constructor(description: WireDescription, sink: IntakeSink, options: IntakeOptions) {
    this.#sink = sink;
    this.#options = options;
    const { before } = options;
    this.#run = description.stream.originStreamUUID;
    if (before !== undefined && before.run === this.#run) this.#enter(before.tracks);
    this.describe(description);
    for (const { described } of this.#entries.values()) this.#loseTrack(described);
  }

  /** Applies another description. @throws OvtError when no track is supported */
  describe({ stream }: WireDescription): void {
    const tracks = stream.tracks.map(trackOf).filter((track) => track !== undefined);
    if (tracks.length === 0) throw new OvtError('the stream has no supported track');
    if (stream.playlists !== undefined) this.#playlists = stream.playlists.map(playlistOf);
    this.#follow(stream.originStreamUUID);
    this.#targeted = [];
    // held frames belong to the previous tracks
    if (this.#held.length > 0) this.#release();
    this.#enter(tracks);
    if (this.#announced.length > 0) this.#announce();
  }

  /** Follows to another run on the same connection, as of a node that relays the stream itself. */
  #follow(run: string | undefined): void {
    if (!this.#options.plain || run === undefined || run === this.#run) return;
    this.#run = run;
    this.#entries = new Map();
    this.#options.clock.restart(run);
  }

  #enter(tracks: readonly Track[]): void {
    for (const id of this.#present) if (!tracks.some((track) => track.id === id)) this.#present.delete(id);
    this.#entries = new Map(tracks.map((described) => [described.id, this.#entry(described)]));
  }

  /** Begins the times of the connection, once the origin sends. */
  begin(): void {
    this.#options.clock.restart(this.#run);
    this.#waitingSince = performance.now();
    if (this.#announced.length === 0 && this.#isComplete) this.#announce();
  }

  /** Makes video wait for a key frame, after a loss. */
  lose(): void {
    for (const { described } of this.#entries.values()) this.#loseTrack(described);
  }

  frame(frame: Frame): void {
    const entry = this.#entries.get(frame.track);
    // a kind of track that Kiln does not support
    if (entry === undefined) return;
    if (!isPossible(frame, entry.described)) return this.#options.faults.count('a frame has an impossible timestamp');
    const before = entry.source.track;
    let units: readonly SourceUnit[] | undefined;
    try {
      units = entry.source.units(frame);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#options.faults.count(`malformed frame: ${error.message}`);
    }
    const isNew = units !== undefined && units.length > 0 && !this.#isPresent(entry.described);
    if (isNew) this.#present.add(frame.track);
    const taken = { entry, frame, units, now: performance.now() };
    if (this.#announced.length === 0) return this.#hold(taken);
    if (isNew || entry.source.track !== before) this.#announce();
    this.#passAll(taken);
  }

  #hold(held: Held): void {
    this.#held.push(held);
    this.#heldBytes += held.frame.data.length;
    if (this.#mayBegin) this.#release();
  }

  #release(): void {
    this.#announce();
    const all = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    // the origin is joined anywhere between two key frames: frames before the first are left out
    const first = all.findIndex(({ entry, units = [] }) => entry.described.type === 'video' && units.some(isKey));
    for (const one of all.slice(Math.max(0, first))) this.#passAll(one);
  }

  #passAll({ entry, frame, units, now }: Held): void {
    if (units === undefined) return this.#loseTrack(entry.described);
    const { track: whole } = entry.source;
    const track = whole?.type === 'data' && units.length > 0 ? this.#eventTrack(whole, frame) : whole;
    if (track === undefined || !this.#announced.includes(track)) return;
    for (const unit of units) this.#pass(entry, track, frame, unit, now);
  }

  #pass(
    { described: { id, timebase }, lead }: Entry,
    track: Track,
    { dts, pts }: Frame,
    { data, key, duration, offset }: SourceUnit,
    now: number,
  ): void {
    const samples = track.type === 'audio' && timebase.den !== track.timebase.den ? duration : 0;
    const ahead = offset === 0 ? 0 : rescale(offset, track.timebase, timebase);
    const { clock } = this.#options;
    if (clock.precedes(id, dts + ahead, timebase)) return this.#loseTrack(track);
    const time = clock.next(id, dts + ahead, timebase, track.timebase, samples, now);
    if (this.#gate !== undefined && !this.#passesGate(this.#gate, { track, key, pts })) return;
    if (time === undefined) return;
    const shown = rescale(pts - dts, timebase, track.timebase);
    if (lead === undefined) return this.#sink.packet({ track, dts: time, pts: time + shown, duration, key, data });
    lead.note(track, key, shown);
    const decoded = lead.next(time);
    this.#sink.packet({ track, dts: decoded, pts: Math.max(decoded, time + shown), duration, key, data });
  }

  #passesGate(gate: KeyGate, packet: Pick<Packet, 'track' | 'key' | 'pts'>): boolean {
    const passes = gate.passes(packet);
    if (!gate.waits) this.#gate = undefined;
    return passes;
  }

  #eventTrack(from: DataTrack, { packetType }: Frame): DataTrack {
    const target = from.target === undefined ? eventTarget(packetType) : undefined;
    if (target === undefined || this.#announced.length === 0) return from;
    const known = this.#targeted.find((one) => one.from === from && one.track.target === target);
    if (known !== undefined) return known.track;
    const track = Object.freeze({ ...from, id: freeId(this.#announced), target });
    this.#targeted = [...this.#targeted, { from, track }];
    this.#announce();
    return track;
  }

  /** Keeps a track whose description is unchanged. */
  #entry(described: Track): Entry {
    const known = this.#entries.get(described.id);
    if (known !== undefined && JSON.stringify(known.described) === JSON.stringify(described)) return known;
    if (known === undefined || !sameFormat(known.described, described)) this.#loseTrack(described);
    const { plain } = this.#options;
    return { described, source: trackSource(described, plain), lead: plain ? undefined : new DecodeLead() };
  }

  #loseTrack(track: Track): void {
    if (track.type !== 'video') return;
    this.#gate ??= new KeyGate();
    this.#gate.lose({ track });
  }

  get #isComplete(): boolean {
    for (const { described, source } of this.#entries.values())
      if (source.track === undefined || !this.#isPresent(described)) return false;
    return true;
  }

  get #mayBegin(): boolean {
    if (this.#isComplete || this.#held.length >= MAX_HELD || this.#heldBytes >= MAX_HELD_BYTES) return true;
    const now = performance.now();
    if (now - (this.#waitingSince ?? Infinity) > MAX_WAIT_MS) return true;
    const first = this.#held.find(({ entry: { described } }) => isMedia(described));
    if (first === undefined || now - first.now < SILENT_WAIT_MS) return false;
    return this.#held.every(({ entry: { source } }) => source.track !== undefined);
  }

  #isPresent(described: Track): boolean {
    return this.#options.plain || !isMedia(described) || this.#present.has(described.id);
  }

  #announce(): void {
    const present = [...this.#entries.values()].filter(({ described }) => this.#isPresent(described));
    const known = present.flatMap(({ source: { track } }) => track ?? []);
    if (known.length === 0) return;
    this.#announced = [...known, ...this.#targeted.map(({ track }) => track)];
    this.#sink.tracks(this.#announced, this.#playlists);
  }
}

function isKey({ key }: SourceUnit): boolean {
  return key !== false;
}

/** False for NaN, too: a time that no number holds exactly. */
function isPossible({ dts, pts }: Frame, { timebase }: Track): boolean {
  return Math.abs(toSeconds(pts - dts, timebase)) <= MAX_REORDER_SECONDS;
}
