import { crc32 } from '../crc32.ts';
import { NutError } from './error.ts';
import { CLASS, FLAG, ID, LONG_PACKET, START, type NutStream } from './format.ts';
import { v, vb, writeV } from './vlc.ts';

const VERSION = 4;
const MINOR_VERSION = 0;
/** Flag of the main header: no syncpoints are needed after the first. */
const PIPE_MODE = 2;
const MAX_DISTANCE = 65_536;
/** Times are written whole, never only their lowest bits. */
const MSB_PTS_SHIFT = 0;
const MAX_PTS_DISTANCE = 1;
const FIELDS_UP_TO_COUNT = 6;
/** In an info packet: the value that follows is text (-1, as a signed number is written). */
const TEXT = 2;

/** The two frame codes: fields that all frames share are in the table, others in the frame's head. */
const FRAME = 0;
const KEY_FRAME = 1;
const FRAME_FLAGS = FLAG.codedPts | FLAG.streamId | FLAG.sizeMsb | FLAG.checksum;
/** All but these two and the letter N, which is none by definition. */
const UNUSED_CODES = 253;

/** Frame code, stream, time, size and checksum. */
const MAX_HEAD = 1 + 3 * 8 + 4;
const SLAB = 16_384;

/**
 * Writes NUT for a pipe ("NUT Open Container Format", version 4, pipe mode): one syncpoint at the start, then only
 * frames.
 */
export class NutWriter {
  readonly #streams: readonly NutStream[];
  #slab = Buffer.alloc(0);
  #at = 0;

  constructor(streams: readonly NutStream[]) {
    this.#streams = streams;
  }

  header(): Buffer {
    const streams = this.#streams.map((stream, index) => packet(START.stream, streamHeader(stream, index)));
    const infos = this.#streams.flatMap((stream, index) => frameRateInfo(stream, index));
    const main = packet(START.main, mainHeader(this.#streams));
    return Buffer.concat([ID, main, ...streams, ...infos, packet(START.syncpoint, v(0, 0))]);
  }

  /**
   * Builds the header before a frame's data; it is not reused later.
   * @param stream index of the stream, in the constructor's order
   * @param pts in the stream's timebase
   * @param size bytes of the frame
   * @throws NutError for a negative time, which NUT cannot express
   */
  head(stream: number, pts: number, key: boolean, size: number): Buffer {
    if (!Number.isSafeInteger(pts) || pts < 0) throw new NutError(`NUT cannot express the timestamp ${pts}`);
    if (this.#at + MAX_HEAD > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB);
      this.#at = 0;
    }
    const slab = this.#slab;
    const start = this.#at;
    slab[start] = key ? KEY_FRAME : FRAME;
    let at = writeV(slab, stream, start + 1);
    at = writeV(slab, pts + 2 ** MSB_PTS_SHIFT, at);
    at = writeV(slab, size, at);
    this.#at = slab.writeUInt32BE(crc32(slab, start, at), at);
    return slab.subarray(start, this.#at);
  }
}

function mainHeader(streams: readonly NutStream[]): Buffer {
  const timebases = streams.map(({ timebase }) => v(timebase.num, timebase.den));
  return Buffer.concat([
    v(VERSION, MINOR_VERSION, streams.length, MAX_DISTANCE, streams.length),
    ...timebases,
    frameCodes(FRAME_FLAGS, 1),
    frameCodes(FRAME_FLAGS | FLAG.key, 1),
    frameCodes(FLAG.invalid, UNUSED_CODES),
    // no elision headers
    v(0),
    v(PIPE_MODE),
  ]);
}

/** `count` entries of the table that add nothing to the fields of a frame's head. */
function frameCodes(flags: number, count: number): Buffer {
  const [ptsDelta, sizeMultiplier, stream, size, reserved] = [0, 1, 0, 0, 0];
  return v(flags, FIELDS_UP_TO_COUNT, ptsDelta, sizeMultiplier, stream, size, reserved, count);
}

function streamHeader(stream: NutStream, index: number): Buffer {
  return Buffer.concat([
    v(index, CLASS[stream.kind]),
    vb(Buffer.from(stream.codecTag, 'latin1')),
    // the timebase has the stream's number; no stream flags
    v(index, MSB_PTS_SHIFT, MAX_PTS_DISTANCE, stream.decodeDelay, 0),
    vb(stream.extradata),
    classFields(stream),
  ]);
}

function classFields(stream: NutStream): Buffer {
  // the bitstream has sample aspect ratio and colour
  if (stream.kind === 'video') return v(stream.width, stream.height, 0, 0, 0);
  return stream.kind === 'audio' ? v(stream.samplerate, 1, stream.channels) : v();
}

/** Info packet of a stream with the name from which ffmpeg reads a frame rate. */
function frameRateInfo(stream: NutStream, index: number): Buffer[] {
  if (stream.kind !== 'video' || stream.framerate === undefined) return [];
  const name = vb(Buffer.from('r_frame_rate'));
  const value = vb(Buffer.from(`${Math.round(stream.framerate * 1000)}/1000`));
  // of the whole stream and no chapter, one entry
  return [packet(START.info, Buffer.concat([v(index + 1, 0, 0, 0, 1), name, v(TEXT), value]))];
}

function packet(start: string, content: Buffer): Buffer {
  const size = content.length + 4;
  const head = Buffer.concat([Buffer.from(start, 'hex'), v(size)]);
  const headChecksum = size > LONG_PACKET ? [u32(crc32(head))] : [];
  return Buffer.concat([head, ...headChecksum, content, u32(crc32(content))]);
}

function u32(value: number): Buffer {
  const data = Buffer.allocUnsafe(4);
  data.writeUInt32BE(value);
  return data;
}
