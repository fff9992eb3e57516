import { BitstreamError } from '../../codecs/bits.ts';
import { freeId } from '../../core/event-tracks.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import { rescale, toSeconds } from '../../core/timebase.ts';
import { sameFormat, type DataTrack, type Track } from '../../core/track.ts';
import type { FaultLog } from '../../log.ts';
import type { WireDescription } from '../../protocols/ovt/description.ts';
import { OvtError } from '../../protocols/ovt/error.ts';
import type { Frame } from '../../protocols/ovt/media.ts';
import { playlistOf, trackOf } from '../../protocols/ovt/tracks.ts';
import { eventTarget } from '../../protocols/ovt/wire-form.ts';
import type { LocalClock } from '../intake/local-clock.ts';
import { trackSource, type SourceUnit, type TrackSource } from './track-source.ts';

export interface IntakeSink {
  /** Before the first packet, and after each change. */
  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void;
  packet(packet: Packet): void;
}

export interface IntakeOptions {
  readonly clock: LocalClock;
  readonly faults: FaultLog;
  readonly plain: boolean;
}

/** A track of the origin. */
interface Entry {
  readonly described: Track;
  readonly source: TrackSource;
}

/** How long a track is waited for that is not known from its description; then the others begin. */
const MAX_WAIT_MS = 4000;

/** A picture is not shown so long before or after it is decoded. */
const MAX_REORDER_SECONDS = 10;

/** Makes packets of what an origin tells and sends. Pictures begin, and go on behind a loss, at a key frame. */
export class Intake {
  readonly #sink: IntakeSink;
  readonly #options: IntakeOptions;
  #entries = new Map<number, Entry>();
  /** For events that belong beside some tracks only, where each of them tells so, and not the description. */
  #targeted: readonly { readonly from: DataTrack; readonly track: DataTrack }[] = [];
  #playlists: readonly Playlist[] = [];
  /** What the sink was told last. */
  #told: readonly Track[] = [];
  #gate: KeyGate | undefined;
  #waitingSince: number | undefined;

  /** @throws OvtError when there is no track that can be taken */
  constructor(description: WireDescription, sink: IntakeSink, options: IntakeOptions) {
    this.#sink = sink;
    this.#options = options;
    this.describe(description);
  }

  /**
   * Takes another description.
   * @throws OvtError when there is no track that can be taken
   */
  describe({ stream }: WireDescription): void {
    const tracks = stream.tracks.map(trackOf).filter((track) => track !== undefined);
    if (tracks.length === 0) throw new OvtError('the stream has no supported track');
    if (stream.playlists !== undefined) this.#playlists = stream.playlists.map(playlistOf);
    this.#targeted = [];
    this.#entries = new Map(tracks.map((described) => [described.id, this.#entry(described)]));
    if (this.#told.length > 0) this.#tell();
  }

  /** The origin sends from now on. */
  begin(): void {
    this.#waitingSince = performance.now();
    if (this.#told.length === 0 && this.#isComplete) this.#tell();
  }

  /** Frames did not come: pictures wait for a key frame. */
  lose(): void {
    for (const { described } of this.#entries.values()) this.#loseTrack(described);
  }

  frame(frame: Frame): void {
    const entry = this.#entries.get(frame.track);
    // of a kind of track that this server does not carry
    if (entry === undefined) return;
    if (!isPossible(frame, entry.described)) return this.#options.faults.count('a frame has an impossible timestamp');
    const before = entry.source.track;
    let units: readonly SourceUnit[];
    try {
      units = entry.source.units(frame);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#options.faults.count(`malformed frame: ${error.message}`);
      return this.#loseTrack(entry.described);
    }
    const { track: whole } = entry.source;
    if (this.#told.length === 0 ? this.#mayBegin : whole !== before) this.#tell();
    const track = whole?.type === 'data' && units.length > 0 ? this.#eventTrack(whole, frame) : whole;
    if (track === undefined || !this.#told.includes(track)) return;
    const now = performance.now();
    for (const unit of units) this.#pass(entry.described, track, frame, unit, now);
  }

  #pass(
    { id, timebase }: Track,
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
    const packet = { track, dts: time, pts: time + rescale(pts - dts, timebase, track.timebase), duration, key, data };
    if (this.#gate !== undefined) {
      const passes = this.#gate.passes(packet);
      if (!this.#gate.waits) this.#gate = undefined;
      if (!passes) return;
    }
    this.#sink.packet(packet);
  }

  #eventTrack(from: DataTrack, { packetType }: Frame): DataTrack {
    const target = from.target === undefined ? eventTarget(packetType) : undefined;
    if (target === undefined || this.#told.length === 0) return from;
    const known = this.#targeted.find((one) => one.from === from && one.track.target === target);
    if (known !== undefined) return known.track;
    const track = Object.freeze({ ...from, id: freeId(this.#told), target });
    this.#targeted = [...this.#targeted, { from, track }];
    this.#tell();
    return track;
  }

  /** A track that is described as before goes on as it is. */
  #entry(described: Track): Entry {
    const known = this.#entries.get(described.id);
    if (known !== undefined && JSON.stringify(known.described) === JSON.stringify(described)) return known;
    if (known === undefined || !sameFormat(known.described, described)) this.#loseTrack(described);
    return { described, source: trackSource(described, this.#options.plain) };
  }

  #loseTrack(track: Track): void {
    if (track.type !== 'video') return;
    this.#gate ??= new KeyGate();
    this.#gate.lose({ track });
  }

  get #isComplete(): boolean {
    for (const { source } of this.#entries.values()) if (source.track === undefined) return false;
    return true;
  }

  get #mayBegin(): boolean {
    return this.#isComplete || performance.now() - (this.#waitingSince ?? Infinity) > MAX_WAIT_MS;
  }

  #tell(): void {
    const known = [...this.#entries.values()].flatMap(({ source: { track } }) => track ?? []);
    if (known.length === 0) return;
    this.#told = [...known, ...this.#targeted.map(({ track }) => track)];
    this.#sink.tracks(this.#told, this.#playlists);
  }
}

/** Times that no number can tell exactly are NaN. */
function isPossible({ dts, pts }: Frame, { timebase }: Track): boolean {
  return Math.abs(toSeconds(pts - dts, timebase)) <= MAX_REORDER_SECONDS;
}
