import { box } from '../../containers/fmp4/box.ts';
import { BOX_HEAD_BYTES, child, children } from '../../containers/fmp4/read-box.ts';
import { readSampleEntry, type AnyDescription } from '../../containers/fmp4/read-sample-entry.ts';
import { UnsupportedTrackError } from '../../containers/fmp4/sample-entry.ts';
import type { ByteSource } from '../byte-source.ts';
import { asDamage, ClipError, damaged } from './error.ts';
import { findMarks, type Marks, type SampleTables } from './marks.ts';
import { loadSamples, SampleCursor } from './samples.ts';
import { TableSource } from './table-source.ts';
import type { Table } from './tables.ts';

/** How players show subtitles. */
export interface ShownHow {
  readonly label: string;
  readonly language?: string;
  readonly isDefault: boolean;
  readonly forced: boolean;
}

/** A track of a finished MP4 recording. Its tables stay in the file. */
export interface RecordedTrack {
  readonly id: number;
  readonly type: 'video' | 'audio' | 'subtitle';
  readonly timescale: number;
  readonly description: AnyDescription;
  /** Set for subtitles. */
  readonly shown?: ShownHow;
  /** `stsd`. Video has the same one in recordings that can follow each other in a clip. */
  readonly format: Buffer;
  /** `trak` without edits and tables. */
  readonly trak: Buffer;
  /** Ticks from the media's time to the movie's. */
  readonly shift: number;
  readonly samples: number;
  /** Ticks of all samples. */
  readonly duration: number;
  /** Ticks from the first decode time to the first presentation. */
  readonly lead: number;
  readonly marks: Marks;
  readonly tables: SampleTables;
}

/** Index of a finished MP4 recording: some hundred kilobytes for hours of media. */
export interface RecordedMp4 {
  readonly source: ByteSource;
  readonly tracks: readonly RecordedTrack[];
  /** Track that frames are counted of: the first video, else the first audio. */
  readonly leader: RecordedTrack;
  /** Times of the leader's first presentation, and of its end, in seconds of the movie. */
  readonly begin: number;
  readonly end: number;
}

/** Limits of what a recorder writes. */
const MAX_TOP_BOXES = 16;
const MAX_BOXES = 64;
const MAX_MEDIA_TRACKS = 16;
/** Mostly labels of subtitles. */
const MAX_TRACKS = 256;
const MAX_SMALL_BYTES = 1024 * 1024;
const MAX_SAMPLES = 64 * 1024 * 1024;
const MAX_SECONDS = 10 * 365 * 86_400;
/** Bytes read ahead of a small box. */
const NEAR_BYTES = 4096;
/** Samples among which the first that is shown is. */
const REORDERED = 64;

const HANDLERS: Readonly<Record<string, RecordedTrack['type']>> = { vide: 'video', soun: 'audio', text: 'subtitle' };
const WEB_VTT = 'wvtt';
/** Last byte of the flags of a full box, and one of those of `tkhd`. */
const FLAGS_AT = 11;
const ENABLED = 1;
/** Positions of texts in `hdlr` and `elng`. */
const NAME_AT = 32;
const TAG_AT = 12;

const LARGE_HEAD_BYTES = 16;
/** Head, version, flags and number of entries. */
const STSD_HEAD_BYTES = 16;

interface Place {
  readonly type: string;
  readonly at: number;
  /** Position of the content. */
  readonly content: number;
  readonly end: number;
}

/**
 * Reads the index of a finished MP4 recording.
 * @throws ClipError for a damaged one, one without its index, or another form; SourceError
 */
export async function openMp4(source: ByteSource, signal?: AbortSignal): Promise<RecordedMp4> {
  try {
    const near = new NearBytes(new TableSource(source), signal);
    const movie = await findMovie(near);
    const traks = movie.filter(({ type }) => type === 'trak');
    if (traks.length > MAX_TRACKS) throw damaged(`it has ${traks.length} tracks`);
    const header = await small(near, named(movie, 'mvhd'));
    const timescale = header.readUInt32BE(header[8] === 1 ? 28 : 20);
    if (timescale === 0) throw damaged('its movie has no timescale');
    const tracks: RecordedTrack[] = [];
    for (const trak of traks) {
      const track = await readTrack(near, trak, timescale);
      if (track !== undefined) tracks.push(track);
    }
    if (tracks.filter(({ type }) => type !== 'subtitle').length > MAX_MEDIA_TRACKS)
      throw damaged(`it has more than ${MAX_MEDIA_TRACKS} tracks of media`);
    const leader = tracks.find(({ type }) => type === 'video') ?? tracks.find(({ type }) => type === 'audio');
    if (leader === undefined) throw new ClipError('empty', 'the MP4 file has no frames');
    const begin = (leader.lead + leader.shift) / leader.timescale;
    return { source, tracks, leader, begin, end: begin + leader.duration / leader.timescale };
  } catch (error) {
    throw error instanceof UnsupportedTrackError ? new ClipError('unsupported', error.message) : asDamage(error);
  }
}

/** Boxes in the `moov` of a file that was finished. */
async function findMovie(near: NearBytes): Promise<Place[]> {
  let at = 0;
  for (let count = 0; at < near.source.size && count < MAX_TOP_BOXES; count++) {
    const place = await placeAt(near, at, near.source.size);
    if (place.type === 'moof')
      throw new ClipError('unsupported', 'the MP4 file was not finished: it has fragments without an index');
    if (place.type === 'moov') {
      const movie = await placesIn(near, place.content, place.end, MAX_BOXES + MAX_TRACKS);
      if (movie.every(({ type }) => type !== 'mvex')) return movie;
    }
    at = place.end;
  }
  throw damaged('there is no index');
}

async function readTrack(near: NearBytes, trak: Place, movieScale: number): Promise<RecordedTrack | undefined> {
  const mdia = await placeOf(near, trak, 'mdia');
  const minf = await placeOf(near, mdia, 'minf');
  const stbl = await placeOf(near, minf, 'stbl');
  const tkhd = await small(near, await placeOf(near, trak, 'tkhd'));
  const mdhd = await small(near, await placeOf(near, mdia, 'mdhd'));
  const hdlr = await small(near, await placeOf(near, mdia, 'hdlr'));
  const handler = hdlr.toString('latin1', 16, 20);
  const type = HANDLERS[handler];
  if (type === undefined) return undefined;
  const inner: Buffer[] = [];
  for (const place of await placesIn(near, minf.content, minf.end))
    if (place.type !== 'stbl') inner.push(await small(near, place));
  const places = await placesIn(near, stbl.content, stbl.end);
  const stsd = await small(near, await placeOf(near, stbl, 'stsd'));
  const entry = stsd.subarray(STSD_HEAD_BYTES);
  if (type === 'subtitle' && entry.toString('latin1', 4, 8) !== WEB_VTT) return undefined;
  const timescale = mdhd.readUInt32BE(mdhd[8] === 1 ? 28 : 20);
  if (timescale === 0) throw damaged('a track has no timescale');
  const tables = await readTables(near, places);
  if (tables.samples === 0) return undefined;
  if (tables.samples > MAX_SAMPLES) throw damaged(`a track has ${tables.samples} samples`);
  const edits = (await placesIn(near, trak.content, trak.end)).find((place) => place.type === 'edts');
  const shift = edits === undefined ? 0 : shiftOf(await small(near, edits), movieScale, timescale);
  const { marks, duration } = await findMarks(tables, near.signal);
  const ofSubtitles = async (parent: Place, name: string): Promise<Buffer[]> => {
    const all = type === 'subtitle' ? await placesIn(near, parent.content, parent.end) : [];
    return await Promise.all(all.filter((place) => place.type === name).map((place) => small(near, place)));
  };
  const [tag, role] = [await ofSubtitles(mdia, 'elng'), await ofSubtitles(trak, 'udta')];
  if (Math.max(duration, Math.abs(shift)) > MAX_SECONDS * timescale) throw damaged('its times are too large');
  const track = {
    id: tkhd.readUInt32BE(tkhd[8] === 1 ? 28 : 20),
    type,
    timescale,
    description: type === 'subtitle' ? ({ type, codec: 'WebVTT' } as const) : readSampleEntry(entry),
    format: stsd,
    trak: box('trak', tkhd, ...role, box('mdia', mdhd, ...tag, hdlr, box('minf', ...inner, box('stbl', stsd)))),
    ...(type === 'subtitle' && { shown: shownHow(tkhd, hdlr, tag[0], role[0]) }),
    shift,
    samples: tables.samples,
    duration,
    lead: 0,
    marks,
    tables,
  } as const;
  return { ...track, lead: await leadOf(track, near.signal) };
}

/** Reads what a recorder wrote of subtitles: `tkhd`, `hdlr`, `elng` and `udta`. */
function shownHow(tkhd: Buffer, hdlr: Buffer, tag: Buffer | undefined, role: Buffer | undefined): ShownHow {
  return {
    label: textOf(hdlr, NAME_AT),
    ...(tag !== undefined && { language: textOf(tag, TAG_AT) }),
    isDefault: ((tkhd[FLAGS_AT] ?? 0) & ENABLED) !== 0,
    forced: role?.includes('forced-subtitle') ?? false,
  };
}

/** Text that ends with a zero byte. */
function textOf(bytes: Buffer, at: number): string {
  const end = bytes.indexOf(0, at);
  return bytes.toString('utf8', at, end < 0 ? bytes.length : end);
}

async function leadOf(track: RecordedTrack, signal?: AbortSignal): Promise<number> {
  if (track.tables.offsets === undefined) return 0;
  const cursor = new SampleCursor(await loadSamples(track, 0, Math.min(track.samples, REORDERED), signal));
  let lead = Infinity;
  while (cursor.next()) lead = Math.min(lead, cursor.shown);
  return Math.max(0, lead);
}

async function readTables(near: NearBytes, places: readonly Place[]): Promise<SampleTables> {
  const { source } = near;
  const read = async (type: string, before: number, width: number): Promise<Table | undefined> => {
    const place = places.find((one) => one.type === type);
    if (place === undefined) return undefined;
    const at = place.content + before + 4;
    const entries = (await near.take(at - 4, 4)).readUInt32BE(0);
    if (at + entries * width > place.end) throw damaged(`its ${type} is cut off`);
    return { source, at, entries, width };
  };
  const demand = (table: Table | undefined, type: string): Table => {
    if (table === undefined) throw damaged(`there is no ${type} box`);
    return table;
  };
  const sizes = places.find(({ type }) => type === 'stsz');
  if (sizes !== undefined && (await near.take(sizes.content + 4, 4)).readUInt32BE(0) !== 0)
    throw new ClipError('unsupported', 'the MP4 file has samples of one size');
  const stsz = demand(await read('stsz', 8, 4), 'stsz');
  return {
    samples: stsz.entries,
    sizes: stsz,
    durations: demand(await read('stts', 4, 8), 'stts'),
    offsets: await read('ctts', 4, 8),
    keys: await read('stss', 4, 4),
    runs: demand(await read('stsc', 4, 12), 'stsc'),
    chunks: demand((await read('co64', 4, 8)) ?? (await read('stco', 4, 4)), 'co64'),
  };
}

/** Ticks of the track from its media time to the movie's, of edits with one piece of media. */
function shiftOf(edts: Buffer, movieScale: number, timescale: number): number {
  const { content } = child(edts.subarray(BOX_HEAD_BYTES), 'elst');
  const isLong = content[0] === 1;
  const width = isLong ? 20 : 12;
  const entries = content.readUInt32BE(4);
  let empty = 0;
  for (let index = 0; index < entries; index++) {
    const at = 8 + index * width;
    const duration = isLong ? Number(content.readBigUInt64BE(at)) : content.readUInt32BE(at);
    const time = isLong ? Number(content.readBigInt64BE(at + 8)) : content.readInt32BE(at + 4);
    if (time >= 0) {
      if (index < entries - 1) throw new ClipError('unsupported', 'the MP4 file has edits');
      return Math.round((empty * timescale) / movieScale) - time;
    }
    empty += duration;
  }
  return 0;
}

/** Boxes of a container. @param most limit of them */
async function placesIn(near: NearBytes, from: number, to: number, most = MAX_BOXES): Promise<Place[]> {
  const places: Place[] = [];
  for (let at = from; at < to;) {
    if (places.length === most) throw damaged('it has too many boxes');
    const place = await placeAt(near, at, to);
    places.push(place);
    at = place.end;
  }
  return places;
}

async function placeOf(near: NearBytes, { content, end }: Place, type: string): Promise<Place> {
  return named(await placesIn(near, content, end), type);
}

function named(places: readonly Place[], type: string): Place {
  const found = places.find((place) => place.type === type);
  if (found === undefined) throw damaged(`there is no ${type} box`);
  return found;
}

async function placeAt(near: NearBytes, at: number, to: number): Promise<Place> {
  if (at + BOX_HEAD_BYTES > to) throw damaged('it is cut off');
  const head = await near.take(at, BOX_HEAD_BYTES);
  let size = head.readUInt32BE(0);
  let bytes = BOX_HEAD_BYTES;
  if (size === 1 && at + LARGE_HEAD_BYTES <= to) {
    size = Number((await near.take(at + BOX_HEAD_BYTES, 8)).readBigUInt64BE(0));
    bytes = LARGE_HEAD_BYTES;
  }
  if (size < bytes || at + size > to) throw damaged('it is cut off');
  return { type: head.toString('latin1', 4, 8), at, content: at + bytes, end: at + size };
}

/** A whole box, with its head. */
async function small(near: NearBytes, { type, at, end }: Place): Promise<Buffer> {
  if (end - at > MAX_SMALL_BYTES) throw damaged(`its ${type} has ${end - at} bytes`);
  const bytes = Buffer.from(await near.take(at, end - at));
  if (type === 'stsd' && children(bytes.subarray(STSD_HEAD_BYTES)).length !== 1)
    throw new ClipError('unsupported', 'a track of the MP4 file has several sample descriptions');
  return bytes;
}

/** Reads small pieces that are near each other at once. */
class NearBytes {
  readonly source: ByteSource;
  readonly signal: AbortSignal | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(source: ByteSource, signal: AbortSignal | undefined) {
    this.source = source;
    this.signal = signal;
  }

  async take(at: number, length: number): Promise<Buffer> {
    if (at < this.#at || at + length > this.#at + this.#bytes.length) {
      const most = this.source.size - at;
      if (length > most) throw damaged('it is cut off');
      this.#bytes = await this.source.read(at, Math.min(Math.max(length, NEAR_BYTES), most), this.signal);
      this.#at = at;
    }
    return this.#bytes.subarray(at - this.#at, at - this.#at + length);
  }
}
