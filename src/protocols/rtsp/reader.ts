import { RtspError } from './error.ts';
import { header, parseHead, type RtspRequest, type RtspResponse } from './message.ts';

/** Receives the contents of a connection, in order. */
export interface ReaderSink {
  response(response: RtspResponse): void;
  request(request: RtspRequest): void;
  /** A media packet between the messages (RFC 2326 section 10.12), a slice of the received data where possible. */
  media(channel: number, data: Buffer): void;
  /** Number of bytes that belong to no message or packet. */
  garbage(bytes: number): void;
}

export interface ReaderLimits {
  readonly headBytes: number;
  readonly bodyBytes: number;
  /** Bytes of garbage in ten seconds. */
  readonly garbageBytes: number;
}

const DOLLAR = 0x24;
const CR = 0x0d;
const LF = 0x0a;
const FRAME_HEAD = 4;
const NOTHING = Buffer.alloc(0);
/** Longest first word of a message. */
const MAX_WORD = 20;
const FIRST_WORD = /^(?:RTSP\/1\.|[A-Z_]{3,20} )/;
const ANSWER = Buffer.from('RTSP/1.');
/** The longest end of a head: a line's, and an empty line. */
const HEAD_END = 4;
const GARBAGE_MS = 10_000;

type Head = ReturnType<typeof parseHead>;

/** Incomplete packet of a channel, or body of a message, of known length. */
interface Unfinished {
  readonly of: number | Head;
  readonly data: Buffer;
}

/**
 * Splits the bytes of a connection into messages and packets, in linear time, whatever the pieces they come in. Other bytes are
 * skipped, up to where a message or packet surely begins.
 */
export class RtspReader {
  readonly #limits: ReaderLimits;
  readonly #sink: ReaderSink;
  /** Incomplete head of a packet or message. */
  #pending: Buffer = NOTHING;
  /** Bytes of `#pending` that are known not to contain the end of a message's head. */
  #searched = 0;
  #unfinished: Unfinished | undefined;
  #have = 0;
  readonly #channels = new Set<number>();
  /** The latest bytes belong to no message or packet. */
  #isLost = false;
  #garbage = 0;
  #garbageSince = -Infinity;
  /** Position in the current data where the next answer may begin; undefined until it is searched for. */
  #answer: number | undefined;
  #now = 0;
  #closed = false;

  constructor(limits: ReaderLimits, sink: ReaderSink) {
    this.#limits = limits;
    this.#sink = sink;
  }

  /** Announces packets of a channel: after garbage only announced channels are accepted. */
  expect(channel: number): void {
    this.#channels.add(channel);
  }

  /** Stops all calls of the sink. */
  close(): void {
    this.#closed = true;
    this.#pending = NOTHING;
    this.#unfinished = undefined;
  }

  /** Takes bytes, and owns them from now on. @param now in milliseconds of the monotonic clock @throws RtspError */
  push(bytes: Buffer, now: number): void {
    this.#now = now;
    let data = bytes;
    let at = this.#fill(data);
    if (this.#pending.length > 0) {
      data = Buffer.concat([this.#pending, data.subarray(at)]);
      this.#pending = NOTHING;
      at = 0;
    }
    this.#answer = undefined;
    while (at < data.length && !this.#closed) {
      const next = data[at] === DOLLAR ? this.#media(data, at) : this.#text(data, at);
      if (next === undefined) {
        this.#pending = data.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** Adds data to the incomplete packet or body. @returns number of bytes used */
  #fill(data: Buffer): number {
    const unfinished = this.#unfinished;
    if (unfinished === undefined) return 0;
    const taken = data.copy(unfinished.data, this.#have);
    this.#have += taken;
    if (this.#have === unfinished.data.length) {
      this.#unfinished = undefined;
      this.#tell(unfinished.of, unfinished.data);
    }
    return taken;
  }

  /** @returns where the packet ends, undefined when its head is not whole */
  #media(data: Buffer, at: number): number | undefined {
    if (at + FRAME_HEAD > data.length) return undefined;
    const channel = data[at + 1] as number;
    if (this.#isLost && !this.#channels.has(channel)) return this.#skip(data, at);
    return this.#take(channel, data, at + FRAME_HEAD, data.readUInt16BE(at + 2));
  }

  /** @returns where the message ends, undefined when its head is not whole. @throws RtspError */
  #text(data: Buffer, at: number): number | undefined {
    const first = data[at];
    // servers put empty lines between messages
    if (first === CR || first === LF) return at + 1;
    const word = data.toString('latin1', at, at + MAX_WORD + 1);
    if (!FIRST_WORD.test(word)) {
      const mayBecome = word.length <= MAX_WORD && /^[A-Z_]*(?:\/[1.]*)?$/.test(word);
      return mayBecome ? undefined : this.#skip(data, at);
    }
    // the searched bytes are at the front, and their last ones may begin the end of the head
    const end = headEnd(data, at + Math.max(0, this.#searched - HEAD_END));
    if (end === undefined) {
      if (data.length - at > this.#limits.headBytes) throw new RtspError('an RTSP header is too long');
      this.#searched = data.length - at;
      return undefined;
    }
    this.#searched = 0;
    const head = parseHead(data.toString('utf8', at, end.head));
    const length = bodyLength(header(head.headers, 'content-length'));
    if (length > this.#limits.bodyBytes) throw new RtspError('an RTSP message is too long');
    return this.#take(head, data, end.next, length);
  }

  /** Takes `length` bytes, or as many as there are. @returns where reading continues */
  #take(of: Unfinished['of'], data: Buffer, start: number, length: number): number {
    this.#isLost = false;
    const end = start + length;
    if (end <= data.length) {
      this.#tell(of, data.subarray(start, end));
      return end;
    }
    this.#unfinished = { of, data: Buffer.allocUnsafe(length) };
    this.#have = data.copy(this.#unfinished.data, 0, start);
    return data.length;
  }

  #tell(of: Unfinished['of'], data: Buffer): void {
    if (typeof of === 'number') this.#sink.media(of, data);
    else if ('status' in of) this.#sink.response({ ...of, body: data });
    else this.#sink.request({ ...of, body: data });
  }

  /** Continues where an announced packet, or an answer, may begin. @throws RtspError */
  #skip(data: Buffer, at: number): number {
    if (this.#answer === undefined || this.#answer <= at) {
      const found = data.indexOf(ANSWER, at + 1);
      this.#answer = found < 0 ? Infinity : found;
    }
    const end = Math.min(this.#answer, data.length);
    let next = at + 1;
    while (next < end && !this.#mayBePacket(data, next)) next++;
    this.#isLost = true;
    this.#count(next - at);
    return next;
  }

  #mayBePacket(data: Buffer, at: number): boolean {
    return data[at] === DOLLAR && (at + 1 === data.length || this.#channels.has(data[at + 1] as number));
  }

  #count(bytes: number): void {
    if (this.#now - this.#garbageSince > GARBAGE_MS) {
      this.#garbageSince = this.#now;
      this.#garbage = 0;
    }
    this.#garbage += bytes;
    this.#sink.garbage(bytes);
    if (this.#garbage > this.#limits.garbageBytes) throw new RtspError('it received data that is not RTSP');
  }
}

/** Finds the end of a header, and the position after its empty line. Lines may lack the carriage return. */
function headEnd(data: Buffer, from: number): { readonly head: number; readonly next: number } | undefined {
  for (let at = data.indexOf(LF, from); at >= 0; at = data.indexOf(LF, at + 1)) {
    if (data[at + 1] === LF) return { head: at, next: at + 2 };
    if (data[at + 1] === CR && data[at + 2] === LF) return { head: at, next: at + 3 };
  }
  return undefined;
}

function bodyLength(text: string | undefined): number {
  if (text === undefined || text === '') return 0;
  if (!/^\d{1,9}$/.test(text)) throw new RtspError('an RTSP message without a length');
  return Number(text);
}
