import { rescaleDown } from './clock.ts';
import { crc32 } from '../crc32.ts';
import { Elements } from './elements.ts';
import { NutError } from './error.ts';
import { FLAG, ID, LONG_PACKET, N, START, type NutStream } from './format.ts';
import type { FrameCode } from './frame-codes.ts';
import { readFrameHead } from './frame-head.ts';
import { readMain, readStream, type NutMain, type NutStreamHeader } from './headers.ts';
import { readSideData } from './side-data.ts';
import { VlcReader } from './vlc.ts';

const START_CODE_BYTES = 8;
const CHECKSUM_BYTES = 4;
const MAX_PACKET = 2 * 1024 * 1024;
/** Limit for an index and other unused packets, which are skipped without being kept. */
const MAX_SKIPPED = 256 * 1024 * 1024;

/** Frame; NUT has no decode times. */
export interface NutFrame {
  readonly stream: number;
  /** In the stream's timebase. */
  readonly pts: number;
  readonly key: boolean;
  /** New extradata of the stream, from this frame on. */
  readonly extradata?: Buffer;
  /** Owned by the receiver. */
  readonly data: Buffer;
}

export interface NutHandler {
  /** Reports the streams, once, before the first frame. */
  streams(streams: readonly NutStream[]): void;
  /** Called in decode order of each stream. */
  frame(frame: NutFrame): void;
}

interface StreamState extends NutStreamHeader {
  lastPts: number;
}

/**
 * Reads NUT from chunks ("NUT Open Container Format", versions 3 and 4). Frames' data are slices of the chunks where
 * they lie in one. Unusable after an error.
 */
export class NutReader {
  readonly #handler: NutHandler;
  readonly #elements = new Elements((data, at) => this.#element(data, at));
  readonly #fields = new VlcReader();
  #identified = false;
  #main: NutMain | undefined;
  #streams: (StreamState | undefined)[] = [];
  #started = false;

  constructor(handler: NutHandler) {
    this.#handler = handler;
  }

  /**
   * Takes the next bytes, which become the reader's.
   * @throws NutError
   */
  push(chunk: Buffer): void {
    this.#elements.push(chunk);
  }

  #element(data: Buffer, at: number): number {
    if (!this.#identified) return this.#id(data, at);
    return data[at] === N ? this.#packet(data, at) : this.#frame(data, at);
  }

  #id(data: Buffer, at: number): number {
    const end = at + ID.length;
    if (end > data.length) return -ID.length;
    if (!data.subarray(at, end).equals(ID)) throw new NutError('not NUT');
    this.#identified = true;
    return end;
  }

  #packet(data: Buffer, at: number): number {
    const fields = this.#fields.open(data, at + START_CODE_BYTES, data.length);
    const size = fields.v();
    const sizeEnd = fields.at;
    const checksum = size > LONG_PACKET ? fields.u32() : undefined;
    if (fields.short) return at - data.length - 1;
    if (checksum !== undefined && crc32(data, at, sizeEnd) !== checksum) {
      throw new NutError('the checksum of a packet head is wrong');
    }
    const start = data.toString('hex', at, at + START_CODE_BYTES);
    const unread = start === START.index || start === START.info;
    if (size < CHECKSUM_BYTES || size > (unread ? MAX_SKIPPED : MAX_PACKET))
      throw new NutError(`a packet of ${size} bytes`);
    const content = fields.at;
    const end = content + size;
    if (unread) return end;
    if (end > data.length) return at - end;
    // a checksum over itself as well is 0
    if (crc32(data, content, end) !== 0) throw new NutError('the checksum of a packet is wrong');
    fields.open(data, content, end - CHECKSUM_BYTES);
    if (start === START.main) this.#readMain(fields);
    else if (start === START.stream) this.#readStream(fields);
    else if (start === START.syncpoint) this.#readSyncpoint(fields);
    else throw new NutError(`an unknown packet ${start}`);
    return end;
  }

  /** Writers repeat the headers now and then. */
  #readMain(fields: VlcReader): void {
    this.#main ??= readMain(fields);
  }

  #readStream(fields: VlcReader): void {
    if (this.#started) return;
    const header = readStream(fields, this.#mainHeader());
    this.#streams[header.index] = { ...header, lastPts: 0 };
  }

  #readSyncpoint(fields: VlcReader): void {
    const { timebases } = this.#mainHeader();
    this.#start();
    const coded = fields.v();
    const timebase = timebases[coded % timebases.length];
    if (fields.short || timebase === undefined || !Number.isSafeInteger(coded))
      throw new NutError('a syncpoint is malformed');
    const time = Math.floor(coded / timebases.length);
    for (const state of this.#streams) {
      if (state !== undefined) state.lastPts = rescaleDown(time, timebase, state.stream.timebase);
    }
  }

  #start(): void {
    if (this.#started) return;
    const streams = Array.from({ length: this.#mainHeader().streams }, (_, index) => {
      const state = this.#streams[index];
      if (state === undefined) throw new NutError('a stream header is missing');
      return state.stream;
    });
    this.#started = true;
    this.#handler.streams(streams);
  }

  #mainHeader(): NutMain {
    if (this.#main === undefined) throw new NutError('NUT without a main header');
    return this.#main;
  }

  #frame(data: Buffer, at: number): number {
    const { codes, elided } = this.#mainHeader();
    if (!this.#started) throw new NutError('a frame before the first syncpoint');
    const fields = this.#fields.open(data, at + 1, data.length);
    const head = readFrameHead(fields, codes[data[at] as number] as FrameCode);
    if (head === undefined) return at - data.length - 1;
    const { flags, stream, codedPts, size } = head;
    const state = this.#streams[stream];
    // long frames have no elision header, whatever the table says
    const prefix = elided[size > LONG_PACKET ? 0 : head.headerIndex];
    if (state === undefined || prefix === undefined || size < prefix.length)
      throw new NutError('a frame head is malformed');
    const start = fields.at;
    const end = start + size - prefix.length;
    if (end > data.length) return at - end;
    const pts = codedPts === undefined ? state.lastPts + head.ptsDelta : fullPts(codedPts, state);
    if (!Number.isSafeInteger(pts)) throw new NutError('the time of a frame is out of range');
    state.lastPts = pts;
    // end of relevance: a frame without data
    if ((flags & FLAG.endOfRelevance) !== 0) return end;
    fields.open(data, start, end);
    const extradata = (flags & FLAG.sideData) === 0 ? undefined : readSideData(fields);
    const rest = data.subarray(fields.at, end);
    const whole = prefix.length === 0 ? rest : Buffer.concat([prefix, rest]);
    const key = (flags & FLAG.key) !== 0;
    this.#handler.frame({ stream, pts, key, data: whole, ...(extradata && { extradata }) });
    return end;
  }
}

/** Decodes coded_pts: a whole time plus 2^msb_pts_shift, or the lowest bits of the time nearest to the last one. */
function fullPts(coded: number, { ptsShift, lastPts }: StreamState): number {
  const range = 2 ** ptsShift;
  if (coded >= range) return coded - range;
  const lowest = lastPts - Math.floor((range - 1) / 2);
  return lowest + ((((coded - lowest) % range) + range) % range);
}
