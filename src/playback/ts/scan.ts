import { elementaryStreams, type ElementaryStream } from '../../containers/mpegts/elementary.ts';
import { SectionReader } from '../../containers/mpegts/section-reader.ts';
import { CLOCK, PACKET_BYTES, PID } from '../../containers/mpegts/stream-types.ts';
import { readPat, readPmt } from '../../containers/mpegts/tables.ts';
import { ticksBetween } from '../../containers/mpegts/times.ts';
import { sameFormat } from '../../core/track.ts';
import type { ByteSource } from '../byte-source.ts';
import { ClipError } from '../clip/error.ts';
import { damagedTs } from './error.ts';
import { isCarried } from './forms.ts';
import { laneOf, type TsLane, type TsSamples } from './lanes.ts';
import type { TsPart } from './part.ts';
import { SpanWriter } from './span-writer.ts';
import { UnitReader, type TsFileUnit } from './unit-reader.ts';

/** Bytes that are read at once: a fraction of a millisecond of work. */
const BLOCK_BYTES = 2048 * PACKET_BYTES;
/** Samples of one index: about 20 hours of video with audio, and 100 MiB. */
const MAX_SAMPLES = 6_000_000;
/** Parts of one file: each has an index of its own. */
const MAX_PARTS = 1000;
/** Ticks by which times may go back without being those of another timeline. */
const MAX_BACK = CLOCK.timebase.den;
/** Ticks after which another timeline goes on. */
const USUAL_STEP = 3600;

/**
 * Makes the index of an MPEG-TS file that a recorder has written: a part for each set of formats.
 * @throws ClipError `damaged` for other bytes, `unsupported` for streams that MP4 does not carry, `empty` without frames; SourceError; the
 * reason of the signal
 * @param rest is waited for after each block, with the milliseconds that its work took
 */
export async function scanTs(
  file: ByteSource,
  signal?: AbortSignal,
  rest?: (workedMs: number) => Promise<void>,
): Promise<readonly TsPart[]> {
  const scan = new Scan();
  const size = file.size - (file.size % PACKET_BYTES);
  if (size === 0) throw damagedTs('it has no transport packet');
  for (let at = 0; at < size; at += BLOCK_BYTES) {
    const block = await file.read(at, Math.min(BLOCK_BYTES, size - at), signal);
    const begin = performance.now();
    scan.push(block, at);
    await rest?.(performance.now() - begin);
  }
  return scan.end(size);
}

class Scan {
  readonly #units: UnitReader;
  readonly #tables = new Map<number, SectionReader>();
  #pmtPid: number | undefined;
  /** By PID, in the order of the program. */
  #lanes = new Map<number, TsLane>();
  #lead: TsLane | undefined;
  readonly #refused = new Set<string>();
  #span: SpanWriter | undefined;
  readonly #parts: TsPart[] = [];
  /** Samples of all parts. */
  #samples = 0;
  /** Whether the next key frame begins a part. */
  #isDue = false;
  #clock: { readonly raw: number; readonly time: number } | undefined;
  #begin: number | undefined;

  constructor() {
    this.#units = new UnitReader({
      unit: (unit) => this.#unit(unit),
      table: (pid, data, from, to, starts) => this.#tables.get(pid)?.payload(data, from, to, starts),
    });
    this.#follow(PID.pat, (section) => {
      const pid = readPat(section)?.[0]?.pid;
      if (pid === undefined || pid === this.#pmtPid) return;
      if (this.#pmtPid !== undefined) this.#units.want(this.#pmtPid, undefined);
      this.#pmtPid = pid;
      this.#follow(pid, (pmt) => this.#program(pmt));
    });
  }

  push(data: Buffer, at: number): void {
    this.#units.push(data, at);
  }

  end(size: number): readonly TsPart[] {
    this.#units.end();
    this.#finish(size);
    if (this.#parts.length > 0) return this.#parts;
    const others = [...this.#refused].join(', ');
    if (others !== '')
      throw new ClipError('unsupported', `MP4 does not carry the streams of the MPEG-TS file: ${others}`);
    if (this.#pmtPid === undefined || this.#lanes.size === 0) throw damagedTs('it has no audio and no video');
    throw new ClipError('empty', 'the MPEG-TS file has no frames');
  }

  #follow(pid: number, section: (data: Buffer) => void): void {
    this.#tables.set(pid, new SectionReader({ section, fault: () => undefined }));
    this.#units.want(pid, 'table');
  }

  #program(section: Buffer): void {
    const map = readPmt(section);
    if (map === undefined) return;
    const known = this.#lanes;
    const lanes = new Map<number, TsLane>();
    for (const stream of elementaryStreams(map)) {
      if (!('form' in stream)) this.#refused.add(stream.unsupported);
      else if (stream.kind !== 'data' && !isCarried(stream.form)) this.#refused.add(stream.form);
      else if (isLaneStream(stream) && !this.#tables.has(stream.pid) && !lanes.has(stream.pid)) {
        const same = known.get(stream.pid);
        lanes.set(stream.pid, same && isSame(same.stream, stream) ? same : laneOf(stream));
      }
    }
    if (lanes.size === known.size && [...lanes].every(([pid, lane]) => known.get(pid) === lane)) return;
    for (const pid of known.keys()) if (!lanes.has(pid)) this.#units.want(pid, undefined);
    for (const [pid, { stream }] of lanes) this.#units.want(pid, stream.kind === 'video' ? 'head' : 'whole');
    this.#lanes = lanes;
    const all = [...lanes.values()];
    this.#lead = all.find(({ stream }) => stream.kind === 'video') ?? all[0];
    if (this.#span !== undefined) this.#isDue = true;
  }

  #unit(unit: TsFileUnit): void {
    const lane = this.#lanes.get(unit.pid);
    const read = lane?.read(unit);
    if (lane === undefined || read === undefined) return;
    if (read === 'other') {
      this.#refused.add(lane.stream.form);
      this.#units.want(unit.pid, undefined);
      return;
    }
    const { pts, dts = pts } = unit.header;
    if (read === 'unknown' || pts === undefined || dts === undefined) return this.#span?.close(unit.at);
    const time = this.#timeOf(dts);
    this.#place(lane, read, unit.at, time, ticksBetween(dts, pts));
  }

  #place(lane: TsLane, read: TsSamples, at: number, time: number, offset: number): void {
    const known = this.#span?.table(lane);
    const isOther = known !== undefined && !sameFormat(known.track, read.track);
    const isBack = known !== undefined && time < known.newest - MAX_BACK;
    const dts = isBack ? this.#goOn(known.newest + USUAL_STEP) : time;
    const pts = dts + offset;
    if (isOther || isBack) this.#isDue = true;
    const key = read.samples[0]?.key === true;
    const leads = lane === this.#lead && key;
    if (leads && (this.#isDue || this.#span === undefined)) {
      this.#finish(at);
      this.#begin ??= pts;
      this.#span = new SpanWriter((pts - this.#begin) / CLOCK.timebase.den);
    } else if (isOther || (this.#isDue && known === undefined) || (known === undefined && !key)) {
      // of the next part, or not to be decoded
      return this.#span?.close(at);
    }
    this.#span?.add(lane, read, at, dts, pts, leads);
    this.#samples += read.samples.length;
    if (this.#samples > MAX_SAMPLES)
      throw new ClipError('unsupported', `the MPEG-TS file has more than ${MAX_SAMPLES} frames`);
  }

  #finish(at: number): void {
    this.#isDue = false;
    const part = this.#span?.end(at, [...this.#lanes.values()]);
    this.#span = undefined;
    if (part === undefined) return;
    this.#parts.push(part);
    if (this.#parts.length > MAX_PARTS)
      throw new ClipError('unsupported', `the formats of the MPEG-TS file change more than ${MAX_PARTS} times`);
  }

  /** A time that does not wrap. */
  #timeOf(raw: number): number {
    const time = this.#clock === undefined ? raw : this.#clock.time + ticksBetween(this.#clock.raw, raw);
    this.#clock = { raw, time };
    return time;
  }

  /** Lets another timeline go on at a time. @returns that */
  #goOn(time: number): number {
    if (this.#clock !== undefined) this.#clock = { ...this.#clock, time };
    return time;
  }
}

function isLaneStream(stream: ElementaryStream): stream is TsLane['stream'] {
  return stream.kind !== 'data' && isCarried(stream.form);
}

function isSame(one: ElementaryStream, other: ElementaryStream): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
