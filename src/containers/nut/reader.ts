import { rescaleDown } from './clock.ts';
import { crc } from './crc.ts';
import { NutError } from './error.ts';
import { FLAG, ID, LONG_PACKET, N, START, type NutStream } from './format.ts';
import { MAX_FRAME_BYTES, MAX_RESERVED, type FrameCode } from './frame-codes.ts';
import { readMain, readStream, type NutMain, type NutStreamHeader } from './headers.ts';
import { skipSideData } from './side-data.ts';
import { VlcReader } from './vlc.ts';

const START_CODE_BYTES = 8;
const MAX_PACKET = 2 * 1024 * 1024;
/** An index and other packets that nothing is read of pass without being kept. */
const MAX_SKIPPED = 256 * 1024 * 1024;

/** A frame; NUT tells no decode times. */
export interface NutFrame {
  /** Index of the stream. */
  readonly stream: number;
  /** In the stream's timebase. */
  readonly pts: number;
  readonly key: boolean;
  /** The receiver's alone: nobody else reads it or writes to it. */
  readonly data: Buffer;
}

export interface NutHandler {
  /** What streams there are: once, in front of the first frame. */
  streams(streams: readonly NutStream[]): void;
  /** In decode order of each stream. */
  frame(frame: NutFrame): void;
}

/** A stream as it is being read. */
interface StreamState extends NutStreamHeader {
  lastPts: number;
}

/**
 * Reads NUT as it comes ("NUT Open Container Format", versions 3 and 4). Frames' data are slices of the chunks
 * where they lie in one. After an error it is of no use.
 */
export class NutReader {
  readonly #handler: NutHandler;
  readonly #fields = new VlcReader();
  /** The beginning of an element, and how many bytes of it are needed to go on. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #wanted = 0;
  /** Bytes left of a packet that passes unread. */
  #skip = 0;
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
    let rest = chunk;
    while (rest.length > 0) {
      const skipped = Math.min(this.#skip, rest.length);
      this.#skip -= skipped;
      rest = rest.subarray(skipped);
      if (this.#heldBytes > 0) {
        const missing = Math.min(this.#wanted - this.#heldBytes, rest.length);
        this.#hold(rest.subarray(0, missing));
        rest = rest.subarray(missing);
        if (this.#heldBytes < this.#wanted) return;
        const element = Buffer.concat(this.#held, this.#heldBytes);
        this.#held = [];
        this.#heldBytes = 0;
        if (this.#element(element, 0) === 0) this.#hold(element);
      } else {
        rest = this.#elements(rest);
      }
    }
  }

  #hold(bytes: Buffer): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }

  /** @returns what is left to be skipped; the beginning of an unfinished element is held */
  #elements(data: Buffer): Buffer {
    let at = 0;
    while (at < data.length && this.#skip === 0) {
      const end = this.#element(data, at);
      if (end === at) {
        this.#hold(data.subarray(at));
        return data.subarray(data.length);
      }
      at = end;
    }
    return data.subarray(at);
  }

  /** @returns the end of the element that begins at `at`, or `at` when more bytes are wanted */
  #element(data: Buffer, at: number): number {
    if (!this.#identified) return this.#id(data, at);
    return data[at] === N ? this.#packet(data, at) : this.#frame(data, at);
  }

  #more(at: number, wanted: number): number {
    this.#wanted = wanted;
    return at;
  }

  #id(data: Buffer, at: number): number {
    const end = at + ID.length;
    if (end > data.length) return this.#more(at, ID.length);
    if (!data.subarray(at, end).equals(ID)) throw new NutError('not NUT');
    this.#identified = true;
    return end;
  }

  #packet(data: Buffer, at: number): number {
    const fields = this.#fields.open(data, at + START_CODE_BYTES, data.length);
    const size = fields.v();
    const sizeEnd = fields.at;
    if (size > LONG_PACKET) {
      const checksum = fields.u32();
      if (!fields.short && crc(data, at, sizeEnd) !== checksum) throw new NutError('the checksum of a packet head is wrong');
    }
    if (fields.short) return this.#more(at, data.length - at + 1);
    const content = fields.at;
    const start = data.toString('hex', at, at + START_CODE_BYTES);
    if (start === START.index || start === START.info) {
      if (size > MAX_SKIPPED) throw new NutError(`a packet of ${size} bytes`);
      this.#skip = size;
      return content;
    }
    if (size > MAX_PACKET || size < 4) throw new NutError(`a packet of ${size} bytes`);
    const end = content + size;
    if (end > data.length) return this.#more(at, end - at);
    if (crc(data, content, end) !== 0) throw new NutError('the checksum of a packet is wrong');
    fields.open(data, content, end - 4);
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
    if (fields.short || timebase === undefined || !Number.isSafeInteger(coded)) throw new NutError('a syncpoint is malformed');
    const time = Math.floor(coded / timebases.length);
    for (const stream of this.#streams) {
      if (stream !== undefined) stream.lastPts = rescaleDown(time, timebase, stream.stream.timebase);
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
    if (!this.#started) throw new NutError('a frame in front of the first syncpoint');
    const code = codes[data[at] as number] as FrameCode;
    const fields = this.#fields.open(data, at + 1, data.length);
    let { flags, headerIndex, reserved } = code;
    if ((flags & FLAG.coded) !== 0) flags ^= fields.bounded(0xffff, 'the flags of a frame');
    if ((flags & FLAG.invalid) !== 0) throw new NutError('a frame code that means nothing');
    const index = (flags & FLAG.streamId) === 0 ? code.stream : fields.v();
    const coded = (flags & FLAG.codedPts) === 0 ? undefined : fields.v();
    const msb = (flags & FLAG.sizeMsb) === 0 ? 0 : fields.v();
    if ((flags & FLAG.matchTime) !== 0) fields.s();
    if ((flags & FLAG.headerIndex) !== 0) headerIndex = fields.v();
    if ((flags & FLAG.reserved) !== 0) reserved = fields.bounded(MAX_RESERVED, 'the count of reserved fields');
    for (let left = reserved; left > 0; left--) fields.v();
    const headEnd = fields.at;
    const checksum = (flags & FLAG.checksum) === 0 ? undefined : fields.u32();
    if (fields.short) return this.#more(at, data.length - at + 1);
    if (checksum !== undefined && crc(data, at, headEnd) !== checksum) throw new NutError('the checksum of a frame head is wrong');

    const size = code.size + code.sizeMultiplier * msb;
    if (size > MAX_FRAME_BYTES) throw new NutError(`a frame of ${size} bytes`);
    // long frames have no elision header, whatever the table says
    const prefix = elided[size > LONG_PACKET ? 0 : headerIndex];
    const stream = this.#streams[index];
    if (stream === undefined || prefix === undefined || size < prefix.length) throw new NutError('a frame head is malformed');
    const start = fields.at;
    const end = start + size - prefix.length;
    if (end > data.length) return this.#more(at, end - at);
    const pts = coded === undefined ? stream.lastPts + code.ptsDelta : fullPts(coded, stream);
    if (!Number.isSafeInteger(pts)) throw new NutError('the time of a frame is out of range');
    stream.lastPts = pts;
    // end of relevance: a frame without data
    if ((flags & FLAG.endOfRelevance) !== 0) return end;
    fields.open(data, start, end);
    if ((flags & FLAG.sideData) !== 0) skipSideData(fields);
    const rest = data.subarray(fields.at, end);
    this.#handler.frame({
      stream: index,
      pts,
      key: (flags & FLAG.key) !== 0,
      data: prefix.length === 0 ? rest : Buffer.concat([prefix, rest]),
    });
    return end;
  }
}

/** coded_pts: the whole time behind 2^msb_pts_shift, or its lowest bits, which mean the time nearest to the last. */
function fullPts(coded: number, { ptsShift, lastPts }: StreamState): number {
  const range = 2 ** ptsShift;
  if (coded >= range) return coded - range;
  const lowest = lastPts - Math.floor((range - 1) / 2);
  return lowest + ((((coded - lowest) % range) + range) % range);
}
