import { OvtError } from './error.ts';
import { MEDIA_HEADER_BYTES, readFrameInfo, type Frame } from './media.ts';
import { PacketReader, PAYLOAD, type PacketHeader, type PacketSink } from './packet.ts';

export interface ReceiverLimits {
  readonly messageBytes: number;
  /** 0 where no media is expected. */
  readonly frameBytes: number;
}

export interface ReceiverSink {
  /** A whole message, which is JSON unless the peer is at fault. */
  message(text: Buffer): void;
  /** A whole frame. The sink owns its data. */
  frame(frame: Frame): void;
  /** Packets are missing or inconsistent since the last frame. */
  loss(): void;
}

/**
 * Assembles messages and frames from the bytes of a connection. Incomplete ones are buffered within the limits.
 *
 * A frame whose packets are not consecutive is skipped up to its marker. So is an incomplete frame before the first marker:
 * the origin may begin in the middle of one.
 */
export class Receiver {
  readonly #reader: PacketReader;

  constructor(limits: ReceiverLimits, sink: ReceiverSink) {
    this.#reader = new PacketReader(new Assembler(limits, sink));
  }

  /** Keeps none of the bytes. @throws OvtError for a violation of the protocol or a limit; any error of the sink */
  push(bytes: Buffer): void {
    this.#reader.push(bytes);
  }
}

const NOTHING: Buffer = Buffer.alloc(0);

class Assembler implements PacketSink {
  readonly #limits: ReceiverLimits;
  readonly #sink: ReceiverSink;
  readonly #frame: FrameBuffer;
  #header: PacketHeader | undefined;
  readonly #message: MessageBuffer;
  /** Sequence number that the next media packet must have. */
  #next: number | undefined;
  /** No whole frame has come yet. */
  #joining = true;
  /** Packets are ignored up to the next marker. */
  #skipping = false;

  constructor(limits: ReceiverLimits, sink: ReceiverSink) {
    this.#limits = limits;
    this.#sink = sink;
    this.#frame = new FrameBuffer(limits.frameBytes);
    this.#message = new MessageBuffer(limits.messageBytes);
  }

  begin(header: PacketHeader): void {
    this.#header = header;
    if (header.type === PAYLOAD.media) return this.#beginMedia(header);
    if (header.type !== PAYLOAD.request && header.type !== PAYLOAD.response) {
      throw new OvtError(`a packet has payload type ${header.type}`);
    }
    if (header.sequence === 0) this.#message.take();
  }

  payload(bytes: Buffer): void {
    if (this.#header?.type !== PAYLOAD.media) {
      this.#message.add(bytes);
    } else if (!this.#skipping && !this.#frame.add(bytes)) {
      this.#wrongFrame();
    }
  }

  end(): void {
    if (this.#header?.marker !== true) return;
    if (this.#header.type === PAYLOAD.media) return this.#endMedia();
    this.#sink.message(this.#message.take());
  }

  #beginMedia({ sequence }: PacketHeader): void {
    if (this.#limits.frameBytes === 0) throw new OvtError('media before it was requested');
    const expected = this.#next;
    this.#next = (sequence + 1) & 0xffff;
    if (expected === undefined || expected === sequence) return;
    // the missing part is unknown: it may include the beginning of the next frame
    this.#skipping = true;
    this.#frame.clear();
    this.#sink.loss();
  }

  #endMedia(): void {
    if (this.#skipping) {
      this.#skipping = false;
      return;
    }
    const frame = this.#frame.take();
    if (frame === undefined) {
      this.#wrongFrame();
      this.#skipping = false;
      return;
    }
    this.#joining = false;
    this.#sink.frame(frame);
  }

  #wrongFrame(): void {
    if (!this.#joining) throw new OvtError('the packets of a frame do not add up to its size');
    this.#skipping = true;
    this.#frame.clear();
  }
}

/** One incomplete message. */
class MessageBuffer {
  readonly #limit: number;
  #data: Buffer = NOTHING;
  #filled = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(bytes: Buffer): void {
    const filled = this.#filled + bytes.length;
    if (filled > this.#limit) throw new OvtError(`a message has more than ${this.#limit} bytes`);
    if (filled > this.#data.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#limit, Math.max(filled, 2 * this.#data.length)));
      this.#data.copy(grown, 0, 0, this.#filled);
      this.#data = grown;
    }
    bytes.copy(this.#data, this.#filled);
    this.#filled = filled;
  }

  /** Returns the collected bytes, and begins another message. */
  take(): Buffer {
    const text = this.#data.subarray(0, this.#filled);
    this.#data = NOTHING;
    this.#filled = 0;
    return text;
  }
}

/** One incomplete frame. */
class FrameBuffer {
  readonly #limit: number;
  readonly #head = Buffer.alloc(MEDIA_HEADER_BYTES);
  #headed = 0;
  #info: ReturnType<typeof readFrameInfo> | undefined;
  #data: Buffer = NOTHING;
  #filled = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns false when the bytes cannot belong to this frame */
  add(bytes: Buffer): boolean {
    let rest = bytes;
    if (this.#info === undefined) {
      const taken = bytes.copy(this.#head, this.#headed);
      this.#headed += taken;
      if (this.#headed < MEDIA_HEADER_BYTES) return true;
      this.#info = readFrameInfo(this.#head);
      if (this.#info.size > this.#limit) return false;
      rest = bytes.subarray(taken);
      this.#data = Buffer.allocUnsafe(this.#info.size);
    }
    if (rest.length > this.#data.length - this.#filled) return false;
    this.#filled += rest.copy(this.#data, this.#filled);
    return true;
  }

  /** Returns the frame, if it is complete, and begins another one. */
  take(): Frame | undefined {
    const info = this.#info;
    const data = this.#data;
    const whole = info !== undefined && this.#filled === info.size;
    this.clear();
    if (!whole) return undefined;
    return { ...info, data };
  }

  clear(): void {
    this.#headed = 0;
    this.#info = undefined;
    this.#data = NOTHING;
    this.#filled = 0;
  }
}
