import type { Packet } from '../../core/packet.ts';
import { rescale } from '../../core/timebase.ts';
import type { Track } from '../../core/track.ts';
import { formOf, isForeseen, programDescriptors, type ElementaryForm } from './elementary-form.ts';
import { packetCount } from './packet-writer.ts';
import { checkLength, pesHeaderBytes } from './pes-writer.ts';
import { writePlanned, type PlannedUnit, type TsUnit } from './planned-unit.ts';
import { Pids, sharesPid } from './pids.ts';
import { ProgramClock } from './program-clock.ts';
import { ProgramTables, writeTables } from './program-tables.ts';
import { buildPmt, PROGRAM, sectionPackets, type ListedProgram } from './section-writer.ts';
import { CLOCK, PACKET_BYTES, PID } from './stream-types.ts';

/** Track that is not carried, with the reason. */
export interface Omitted {
  readonly track: Track;
  readonly reason: string;
}

interface TsStream {
  readonly pid: number;
  readonly track: Track;
  readonly form: ElementaryForm;
  packets: number;
}

/** Ticks of 90 kHz added to all times: streams begin at 0, and an earlier PCR would wrap at once. */
export const OFFSET = 90_000;
/** Ticks of 90 kHz after which the tables are repeated. */
const TABLES_INTERVAL = 22_500;

/**
 * Writes packets of tracks into one program of MPEG-TS (ISO/IEC 13818-1), at their times plus one second. The tables are
 * written with every video key frame and four times a second, the PCR at least every 100 ms, on the PID of the video,
 * else of the first audio.
 */
export class TsMuxer {
  #tracks: readonly Track[] = [];
  /** Streams by track id; event tracks of a codec may share one. */
  #streams = new Map<number, TsStream>();
  #omitted: Omitted[] = [];
  #leader: TsStream | undefined;
  readonly #pids: Pids;
  /** Packets with payload so far of PIDs that are not in use now. */
  readonly #counts = new Map<number, number>();
  readonly #tables = new ProgramTables();
  readonly #clock = new ProgramClock();
  #tablesAt: number | undefined;
  /** Whether the current tables were written. */
  #hasTables = false;

  /** @param pids of the tracks, shared by several writers of a program */
  constructor(tracks: readonly Track[], pids = new Pids()) {
    this.#pids = pids;
    this.setTracks(tracks);
  }

  get omitted(): readonly Omitted[] {
    return this.#omitted;
  }

  /**
   * Sets or replaces the tracks. A track keeps its PID, by its id or, for events, by codec, even if it leaves and
   * returns.
   */
  setTracks(tracks: readonly Track[]): void {
    const streams: TsStream[] = [];
    const byTrack = new Map<number, TsStream>();
    const before = new Set(this.#streams.values());
    const used = new Set<number>();
    this.#tracks = tracks;
    this.#omitted = [];
    for (const track of tracks) {
      const shared = sharesPid(track) ? streams.find((stream) => stream.track.codec === track.codec) : undefined;
      const stream = shared ?? this.#streamOf(track, used);
      if (stream === undefined) continue;
      if (shared === undefined) {
        if (buildPmt({ version: 0, ...programOf([...streams, stream]) }) === undefined) {
          this.#omitted.push({ track, reason: 'the program has too many streams' });
          continue;
        }
        streams.push(stream);
        used.add(stream.pid);
      }
      byTrack.set(track.id, stream);
    }
    this.#streams = byTrack;
    for (const { pid, packets } of before) if (!used.has(pid)) this.#counts.set(pid, packets);
    this.#leader = leaderOf(streams);
    if (this.#tables.set(programOf(streams)) !== false) this.#hasTables = false;
  }

  /** Adds missing tracks; one of another codec replaces the track of the same id. */
  addTracks(tracks: readonly Track[]): void {
    const added = new Map(tracks.map((track) => [track.id, track]));
    for (const { id, codec } of this.#tracks) if (added.get(id)?.codec === codec) added.delete(id);
    if (added.size > 0) this.setTracks([...this.#tracks.filter(({ id }) => !added.has(id)), ...added.values()]);
  }

  /** Writes the tables with the next packet, so that the output can be read from there. */
  repeatTables(): void {
    this.#hasTables = false;
  }

  /** Writes PAT and PMT as the next transport packets of the stream. */
  tables(): Buffer {
    const tables = this.#tables.write();
    const out = Buffer.allocUnsafe(tables.bytes);
    writeTables(out, 0, tables);
    return out;
  }

  /**
   * Writes a packet as whole transport packets; empty for a track that is not carried.
   * @throws BitstreamError for data that cannot be carried; nothing is written then
   */
  write({ track, dts, pts, key, data }: Packet): Buffer {
    return this.writeUnit({ track, dts, pts, key, data: [data] });
  }

  /** Writes several audio frames as one PES packet. @throws BitstreamError */
  writeUnit(unit: TsUnit): Buffer {
    const planned = this.plan(unit);
    const out = Buffer.allocUnsafe(planned?.bytes ?? 0);
    if (planned !== undefined) writePlanned(planned, out, 0);
    return out;
  }

  /**
   * Decides the place of a unit in the stream, for `writePlanned`.
   * @returns undefined for a track that is not carried
   * @throws BitstreamError for data that cannot be carried; it has no place then
   */
  plan(unit: TsUnit): PlannedUnit | undefined {
    const stream = this.#streamFor(unit.track);
    if (stream === undefined) return undefined;
    const {
      track: { timebase, type },
      key,
    } = unit;
    let payload = 0;
    for (const data of unit.data) payload += stream.form.size(data, key);
    const pts = rescale(unit.pts, timebase, CLOCK.timebase) + OFFSET;
    const dts = Math.min(pts, type === 'audio' ? pts : rescale(unit.dts, timebase, CLOCK.timebase) + OFFSET);
    const { streamId } = stream.form;
    if (streamId !== undefined) checkLength(streamId, pts, dts, payload);
    const leads = stream === this.#leader;
    const isKey = key && type === 'video';
    const clock = this.#clock.advance(dts, leads, isKey);
    const due = this.#tablesDue(isKey);
    const random = leads && key && (isKey || due);
    const adaptation =
      random || clock.own !== undefined ? { random, discontinuity: clock.discontinuity, pcr: clock.own } : undefined;
    const packets =
      streamId === undefined
        ? unit.data.reduce((sum, section) => sum + sectionPackets(section), 0)
        : packetCount(adaptation, pesHeaderBytes(pts, dts) + payload);
    const tables = due ? this.#tables.write() : undefined;
    const planned = {
      bytes: (packets + clock.alone.length) * PACKET_BYTES + (tables?.bytes ?? 0),
      unit,
      pid: stream.pid,
      form: stream.form,
      payload,
      pts,
      dts,
      counter: stream.packets,
      tables,
      clock,
      adaptation,
      clockPid: this.#leader?.pid ?? PID.null,
      clockCounter: (this.#leader?.packets ?? 0) - 1,
    };
    stream.packets += packets;
    return planned;
  }

  #tablesDue(isKey: boolean): boolean {
    const { now } = this.#clock;
    const due =
      !this.#hasTables ||
      isKey ||
      (now !== undefined && Math.abs(now - (this.#tablesAt ?? -Infinity)) >= TABLES_INTERVAL);
    if (!due) return false;
    this.#hasTables = true;
    this.#tablesAt = now;
    return true;
  }

  /** Stream of a packet's track, updated if its configuration has changed. */
  #streamFor(track: Track): TsStream | undefined {
    const known = this.#streams.get(track.id);
    if (known === undefined || known.track === track) return known;
    if (track.type === 'data') return known.track.codec === track.codec ? known : undefined;
    this.setTracks(this.#tracks.map((one) => (one.id === track.id ? track : one)));
    return this.#streams.get(track.id);
  }

  /** @param used PIDs of the tracks before it */
  #streamOf(track: Track, used: ReadonlySet<number>): TsStream | undefined {
    const known = this.#streams.get(track.id);
    if (known?.track === track) return known;
    try {
      const form = formOf(track);
      const pid = this.#pids.of(track, used);
      const packets = known?.pid === pid ? known.packets : (this.#counts.get(pid) ?? 0);
      return { pid, track, form, packets };
    } catch (error) {
      if (!isForeseen(error)) throw error;
      this.#omitted.push({ track, reason: error.message });
      return undefined;
    }
  }
}

/** Stream that carries the PCR. */
function leaderOf(streams: readonly TsStream[]): TsStream | undefined {
  return streams.find(({ track }) => track.type === 'video') ?? streams.find(({ track }) => track.type === 'audio');
}

function programOf(streams: readonly TsStream[]): Omit<ListedProgram, 'version'> {
  return {
    pcrPid: leaderOf(streams)?.pid ?? PID.null,
    descriptors: programDescriptors(
      streams.map(({ track }) => track),
      PROGRAM.number,
    ),
    streams: streams.map(({ pid, form: { streamType, descriptors } }) => ({ pid, streamType, descriptors })),
  };
}
