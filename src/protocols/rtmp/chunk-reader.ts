import { RtmpError } from './error.ts';
import { decodeNumber, MessageType, type RtmpMessage } from './message.ts';

export interface ChunkLimits {
  /** Longest accepted message. */
  readonly messageBytes: number;
  /** Declared bytes of all messages that are not complete yet. */
  readonly partialBytes: number;
  readonly chunkStreams: number;
}

const DEFAULT_CHUNK_SIZE = 128;
const MAX_CHUNK_SIZE = 0xffffff;
const EXTENDED = 0xffffff;
/** Three bytes of basic header, eleven of message header, four of extended timestamp. */
const MAX_HEADER_BYTES = 18;
/**
 * A type 3 header after a type 0 one repeats its time as a step (section 5.3.1.2.4), which some encoders mean;
 * others mean "the same time". A longer step can only be the latter.
 */
const MAX_IMPLIED_STEP_MS = 1000;
const MESSAGE_HEADER_BYTES = [11, 7, 3, 0] as const;

/** State of a chunk stream: fields that later headers omit, and its incomplete message. */
interface ChunkStreamState {
  started: boolean;
  timestamp: number;
  /** The time field of the last header with one: a time after type 0, a step after types 1 and 2. */
  field: number;
  /** Increment of the time by a type 3 header that begins a message. */
  step: number;
  extended: boolean;
  length: number;
  type: number;
  streamId: number;
  partial: Buffer | undefined;
  filled: number;
}

/**
 * Puts messages together from chunks (RTMP specification section 5.3), whatever the pieces the bytes
 * come in; the work is linear in the bytes. Each message is copied once, into its own buffer: the pieces
 * may be read into again. SetChunkSize and Abort are obeyed here and not passed on.
 */
export class ChunkReader {
  readonly #onMessage: (message: RtmpMessage) => void;
  readonly #streams = new Map<number, ChunkStreamState>();
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #limits: ChunkLimits;
  #headerFilled = 0;
  #chunkSize = DEFAULT_CHUNK_SIZE;
  #partialBytes = 0;
  /** The stream whose chunk payload is being read, and how much of that payload is missing. */
  #current: ChunkStreamState | undefined;
  #missing = 0;
  /** Some encoders leave the extended timestamp out of type 3 chunks; found out at the first one. */
  #omitsExtended: boolean | undefined;

  constructor(limits: ChunkLimits, onMessage: (message: RtmpMessage) => void) {
    this.#limits = limits;
    this.#onMessage = onMessage;
  }

  setLimits(limits: ChunkLimits): void {
    this.#limits = limits;
  }

  get partialBytes(): number {
    return this.#partialBytes;
  }

  /** @throws RtmpError when the bytes break the protocol or a limit; the reader is then of no more use */
  push(data: Buffer): void {
    let at = 0;
    while (at < data.length) {
      at = this.#current === undefined ? this.#readHeader(data, at) : this.#readPayload(data, at);
    }
  }

  #readHeader(data: Buffer, start: number): number {
    const header = this.#header;
    let at = start;
    for (;;) {
      const need = this.#headerBytes();
      if (this.#headerFilled < need) {
        const count = Math.min(need - this.#headerFilled, data.length - at);
        data.copy(header, this.#headerFilled, at, at + count);
        this.#headerFilled += count;
        at += count;
        if (this.#headerFilled < need) return at;
        continue;
      }
      this.#headerFilled = 0;
      return this.#begin(data, at, need);
    }
  }

  /** Length of the header, as far as the bytes received so far determine it. */
  #headerBytes(): number {
    const filled = this.#headerFilled;
    if (filled === 0) return 1;
    const header = this.#header;
    const basic = this.#basicBytes();
    if (filled < basic) return basic;
    const format = (header[0] as number) >> 6;
    const length = basic + (MESSAGE_HEADER_BYTES[format] as number);
    if (filled < length) return length;
    if (format === 3) {
      const state = this.#streams.get(this.#chunkStreamId());
      return state?.extended && this.#omitsExtended !== true ? length + 4 : length;
    }
    return header.readUIntBE(basic, 3) === EXTENDED ? length + 4 : length;
  }

  #basicBytes(): number {
    const low = (this.#header[0] as number) & 0x3f;
    return low === 0 ? 2 : low === 1 ? 3 : 1;
  }

  #chunkStreamId(): number {
    const header = this.#header;
    const low = (header[0] as number) & 0x3f;
    if (low === 0) return (header[1] as number) + 64;
    if (low === 1) return (header[2] as number) * 256 + (header[1] as number) + 64;
    return low;
  }

  /** Opens or continues a message after a whole header. Returns where its payload goes on in `data`. */
  #begin(data: Buffer, at: number, headerBytes: number): number {
    const header = this.#header;
    const basic = this.#basicBytes();
    const format = (header[0] as number) >> 6;
    const state = this.#stream(this.#chunkStreamId(), format);
    if (format === 3) {
      const extra = headerBytes - basic;
      const surplus = extra === 4 && !this.#isExtended(state, header.readUInt32BE(basic));
      if (state.partial === undefined) this.#open(state, state.timestamp + state.step);
      this.#missing = Math.min(this.#chunkSize, state.length - state.filled);
      this.#current = state;
      if (this.#missing === 0) this.#complete(state);
      if (surplus) this.push(Buffer.from(header.subarray(basic, headerBytes)));
      return at;
    }
    if (state.partial !== undefined) throw new RtmpError('a message begins before the last of its chunk stream ended');
    const time = header.readUIntBE(basic, 3);
    state.extended = time === EXTENDED;
    const field = state.extended ? header.readUInt32BE(headerBytes - 4) : time;
    if (format <= 1) {
      state.length = header.readUIntBE(basic + 3, 3);
      state.type = header[basic + 6] as number;
    }
    if (format === 0) state.streamId = header.readUInt32LE(basic + 7);
    state.field = field;
    state.step = format === 0 && field > MAX_IMPLIED_STEP_MS ? 0 : field;
    state.started = true;
    this.#open(state, format === 0 ? field : state.timestamp + field);
    this.#missing = Math.min(this.#chunkSize, state.length);
    this.#current = state;
    if (this.#missing === 0) this.#complete(state);
    return at;
  }

  #stream(id: number, format: number): ChunkStreamState {
    let state = this.#streams.get(id);
    if (state === undefined) {
      if (this.#streams.size >= this.#limits.chunkStreams) {
        throw new RtmpError(`more than ${this.#limits.chunkStreams} chunk streams`);
      }
      state = {
        started: false,
        timestamp: 0,
        field: 0,
        step: 0,
        extended: false,
        length: 0,
        type: 0,
        streamId: 0,
        partial: undefined,
        filled: 0,
      };
      this.#streams.set(id, state);
    }
    if (!state.started && format >= 2) throw new RtmpError(`chunk stream ${id} begins without a message header`);
    return state;
  }

  /** Distinguishes an extended timestamp from payload: encoders repeat the header's field or the time itself. */
  #isExtended(state: ChunkStreamState, value: number): boolean {
    const repeated = value === state.field >>> 0 || value === state.timestamp;
    this.#omitsExtended ??= !repeated;
    return repeated;
  }

  #open(state: ChunkStreamState, timestamp: number): void {
    const { messageBytes, partialBytes } = this.#limits;
    if (state.length > messageBytes) {
      throw new RtmpError(`message of ${state.length} bytes, ${messageBytes} are allowed`);
    }
    if (this.#partialBytes + state.length > partialBytes) {
      throw new RtmpError(`unfinished messages of more than ${partialBytes} bytes`);
    }
    state.timestamp = timestamp >>> 0;
    state.filled = 0;
  }

  #readPayload(data: Buffer, at: number): number {
    const state = this.#current as ChunkStreamState;
    const count = Math.min(this.#missing, data.length - at);
    const end = at + count;
    if (state.partial === undefined) {
      state.partial = Buffer.allocUnsafe(state.length);
      this.#partialBytes += state.length;
    }
    data.copy(state.partial, state.filled, at, end);
    state.filled += count;
    this.#missing -= count;
    if (this.#missing > 0) return end;
    if (state.filled === state.length) this.#complete(state);
    else this.#current = undefined;
    return end;
  }

  #complete(state: ChunkStreamState): void {
    const payload = state.partial ?? Buffer.alloc(0);
    this.#current = undefined;
    this.#dropPartial(state);
    this.#deliver(state, payload);
  }

  #dropPartial(state: ChunkStreamState): void {
    this.#partialBytes -= state.partial?.length ?? 0;
    state.partial = undefined;
    state.filled = 0;
  }

  #deliver({ type, streamId, timestamp }: ChunkStreamState, payload: Buffer): void {
    const message: RtmpMessage = { type, streamId, timestamp, payload };
    if (type === MessageType.SetChunkSize) {
      const size = decodeNumber(message);
      if (size === 0 || size > 0x7fffffff) throw new RtmpError(`chunk size ${size}`);
      this.#chunkSize = Math.min(size, MAX_CHUNK_SIZE);
    } else if (type === MessageType.Abort) {
      const aborted = this.#streams.get(decodeNumber(message));
      if (aborted !== undefined) this.#dropPartial(aborted);
    } else {
      this.#onMessage(message);
    }
  }
}
