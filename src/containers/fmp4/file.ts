import type { Packet } from '../../core/packet.ts';
import { MILLISECONDS, rescale, toSeconds } from '../../core/timebase.ts';
import type { MediaTrack, SubtitleTrack } from '../../core/track.ts';
import { earliest, timeIn, type FileMuxer, type Origin, type Patch } from '../file-muxer.ts';
import { ascii, box, u32, zeros } from './box.ts';
import { CueSamples } from './cue-samples.ts';
import { finalIndex, MOVIE_TIMESCALE, PLACE_BYTES } from './final-index.ts';
import { fragmentHead, type Run, type Sample } from './fragment.ts';
import { fragmentedMovie } from './init.ts';
import { trackBox, type TrackPlace } from './movie.ts';
import { SampleTable } from './sample-table.ts';

/** Duration of a fragment, and so the loss at the end of an interrupted file. */
const FRAGMENT_SECONDS = 1;
/** Wait of the first fragment for late tracks: one of them may begin the file. */
const BEGINNING_SECONDS = 3;
const FRAGMENT_BYTES = 8 * 1024 * 1024;
/** 64 MB of memory for the index of one track. */
const MAX_SAMPLES = 16 * 1024 * 1024;
const MAX_TICKS = 0xffff_ffff;

interface Part {
  readonly id: number;
  /** Track in the form of the final index. */
  track: MediaTrack;
  readonly table: SampleTable;
  run: Sample[];
  start: number;
  /** Newest packet, whose duration is known with the next one. */
  last: { readonly packet: Packet; readonly dts: number } | undefined;
  /** Duration of the last sample for which it is known. */
  step: number;
  /** Latest end of a sample, in the order in which they are shown. */
  shown: number;
}

interface CuePart {
  readonly id: number;
  readonly track: SubtitleTrack;
  readonly table: SampleTable;
  readonly cues: CueSamples;
}

/**
 * MP4 file that is fragmented while it grows, and gets a full index at its end: `moov` is appended, and the `free` box
 * before all fragments becomes the header of one `mdat` around them.
 */
export class Mp4File implements FileMuxer {
  readonly #parts: ReadonlyMap<number, Part>;
  readonly #cueParts: ReadonlyMap<number, CuePart>;
  /** Subtitles go as far as this one. */
  readonly #leader: Part | undefined;
  readonly #head: Buffer;
  #origin: Origin | undefined;
  #isBegun = false;
  #written = 0;
  #placeAt = 0;
  #fragments = 0;
  #bytes = 0;

  /**
   * @param tracks of codecs that `sampleEntry` knows; packets of subtitles are cues
   * @param origin of an earlier file that this one continues; else the first packets are at 0
   * @throws UnsupportedTrackError
   */
  constructor(tracks: readonly (MediaTrack | SubtitleTrack)[], origin?: Origin) {
    this.#origin = origin;
    const parts = new Map<number, Part>();
    const cueParts = new Map<number, CuePart>();
    const all = tracks.map((track) => (track.type === 'subtitle' ? { ...track, timebase: MILLISECONDS } : track));
    for (const [index, track] of all.entries()) {
      const part = { id: index + 1, table: new SampleTable(track.timebase) };
      if (track.type === 'subtitle') cueParts.set(track.id, { ...part, track, cues: new CueSamples() });
      else parts.set(track.id, { ...part, track, run: [], start: 0, last: undefined, step: 0, shown: -Infinity });
    }
    this.#parts = parts;
    this.#cueParts = cueParts;
    this.#leader = [...parts.values()].find(({ track }) => track.type === 'video') ?? parts.values().next().value;
    this.#head = this.#makeHead(all);
  }

  get origin(): Origin | undefined {
    return this.#origin ?? earliest(this.#beginnings());
  }

  get full(): boolean {
    return [...this.#parts.values(), ...this.#cueParts.values()].some(({ table }) => table.samples >= MAX_SAMPLES);
  }

  write(packet: Packet): readonly Buffer[] {
    this.#cueParts.get(packet.track.id)?.cues.add(packet);
    const part = this.#parts.get(packet.track.id);
    if (part === undefined || this.#isBefore(packet)) return [];
    const { last } = part;
    if ('inBandSets' in packet.track && part.track.type === 'video' && part.track.inBandSets !== true)
      part.track = { ...part.track, inBandSets: true };
    const dts = last === undefined ? packet.dts : Math.max(packet.dts, last.dts);
    if (last !== undefined) this.#complete(part, dts - last.dts);
    const seconds = part.run.length === 0 ? 0 : toSeconds(dts - part.start, part.track.timebase);
    const isKey = packet.key && part.track.type === 'video';
    const isDue = seconds >= BEGINNING_SECONDS || (!this.#isIncomplete && (isKey || seconds >= FRAGMENT_SECONDS));
    const out = isDue || this.#bytes > FRAGMENT_BYTES ? this.#cut() : [];
    part.last = { packet, dts };
    return out;
  }

  end(): { readonly tail: readonly Buffer[]; readonly patches: readonly Patch[] } {
    for (const part of this.#parts.values()) {
      if (part.last !== undefined) this.#complete(part, part.last.packet.duration || part.step);
    }
    const last = this.#cut(true);
    const parts = [...this.#parts.values(), ...this.#cueParts.values()].filter(({ table }) => table.samples > 0);
    if (parts.length === 0) return { tail: last, patches: [] };
    const tracks = parts.map(({ id, track, table }) => ({
      id,
      table,
      trak: (place: TrackPlace) => trackBox(track, place),
    }));
    const { movie, patch } = finalIndex(
      tracks,
      this.#parts.size + this.#cueParts.size + 1,
      this.#placeAt,
      this.#written,
    );
    return { tail: [...last, movie], patches: [patch] };
  }

  /** Whether the beginning of the file is not known yet. */
  get #isIncomplete(): boolean {
    if (this.#origin !== undefined) return false;
    for (const { run, last } of this.#parts.values()) if (run.length === 0 && last === undefined) return true;
    return false;
  }

  /** Whether a packet is before the beginning of the file, and left out. */
  #isBefore({ dts, track: { timebase } }: Packet): boolean {
    return this.#origin !== undefined && timeIn(this.#origin, dts, timebase) < 0;
  }

  #makeHead(tracks: readonly (MediaTrack | SubtitleTrack)[]): Buffer {
    const type = box('ftyp', ascii('isom'), u32(0x200), ascii('isomiso2iso6mp41'));
    this.#placeAt = type.length;
    return Buffer.concat([type, box('free', zeros(PLACE_BYTES - 8)), fragmentedMovie(tracks, MOVIE_TIMESCALE)]);
  }

  #complete(part: Part, duration: number): void {
    const { packet, dts } = part.last as NonNullable<Part['last']>;
    part.last = undefined;
    part.step = Math.min(duration, MAX_TICKS);
    if (part.run.length === 0) part.start = dts;
    part.run.push({
      duration: part.step,
      compositionOffset: part.track.type === 'video' ? packet.pts - dts : 0,
      key: packet.key !== false,
      data: packet.data,
    });
    part.shown = Math.max(part.shown, Math.max(packet.pts, dts) + part.step);
    this.#bytes += packet.data.length;
  }

  /** Writes all samples whose duration is known, and the subtitles of their time. */
  #cut(isLast = false): Buffer[] {
    const parts = [...this.#parts.values()].filter(({ run }) => run.length > 0);
    if (parts.length === 0) return [];
    this.#origin ??= earliest(this.#beginnings());
    const origin = this.#origin as Origin;
    const runs = parts.map(({ id, track, start, run }): Run => {
      const baseTime = Math.max(0, timeIn(origin, start, track.timebase));
      return { type: track.type, trackId: id, baseTime, samples: run };
    });
    const tables = parts.map(({ table }) => table);
    for (const part of this.#cueParts.values()) {
      const run = this.#cueRun(part, parts, origin, isLast);
      if (run === undefined) continue;
      runs.push(run);
      tables.push(part.table);
    }
    this.#fragments += 1;
    const head = fragmentHead(this.#fragments, runs);
    const out = this.#isBegun ? [head] : [this.#head, head];
    this.#isBegun = true;
    this.#written += out.reduce((bytes, { length }) => bytes + length, 0);
    for (const [index, table] of tables.entries()) {
      const run = runs[index] as Run;
      table.add(run, this.#written);
      for (const { data } of run.samples) {
        out.push(data);
        this.#written += data.length;
      }
    }
    for (const part of parts) part.run = [];
    this.#bytes = 0;
    return out;
  }

  /** Samples of subtitles up to the end of the leading track: at the end of the file to the end of what it shows. */
  #cueRun({ id, track, cues }: CuePart, parts: readonly Part[], origin: Origin, isLast: boolean): Run | undefined {
    const leader = this.#leader;
    if (leader === undefined) return undefined;
    const { timebase } = leader.track;
    const until = isLast ? leader.shown : leader.run.reduce((end, { duration }) => end + duration, leader.start);
    if (!Number.isFinite(until) || (!isLast && leader.run.length === 0)) return undefined;
    const begins = parts.map((part) => rescale(part.start, part.track.timebase, MILLISECONDS));
    const zero = rescale(origin.time, origin.timebase, MILLISECONDS);
    const { start, samples } = cues.take(Math.max(zero, Math.min(...begins)), rescale(until, timebase, MILLISECONDS));
    if (samples.length === 0) return undefined;
    return { type: track.type, trackId: id, baseTime: start - zero, samples };
  }

  /** Times of the first packets of the tracks that have any. */
  #beginnings(): Origin[] {
    return [...this.#parts.values()].flatMap(({ run, start, last, track: { timebase } }) => {
      if (run.length > 0) return [{ time: start, timebase }];
      return last === undefined ? [] : [{ time: last.dts, timebase }];
    });
  }
}
