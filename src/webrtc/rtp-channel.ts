import type { Writable } from 'node:stream';
import type { types } from 'mediasoup';

/** Memory in which messages are put together, one after the other. */
const SLAB_BYTES = 64 * 1024;
/** Size of a message's own size, which it does not count, and of that of the packet in it. */
const SIZE_BYTES = 4;
/** Messages are filled up to a multiple of this. */
const ALIGNMENT = 4;
/** Length of an RTP packet without payload. */
const SAMPLE_BYTES = 12;

/**
 * Sends RTP to a media worker on mediasoup's channel, in the messages of `Producer.send`. That copies a packet byte by byte, and
 * twice more, and writes each alone; here it is copied once, and what is added in a turn leaves by one write.
 */
export class RtpChannel {
  readonly #channel: Writable;
  #slab: Buffer = Buffer.alloc(0);
  /** Where the unsent messages begin and end in the slab. */
  #start = 0;
  #end = 0;

  /** @param channel to the worker, which mediasoup writes to as well */
  constructor(channel: Writable) {
    this.#channel = channel;
  }

  /**
   * Takes from mediasoup what stands in front of a packet in a message for a producer: all but the sizes is the same in each.
   * @returns the argument of `add`
   */
  headOf(producer: types.Producer): Buffer {
    let message = Buffer.alloc(0);
    const write = (bytes: Uint8Array): boolean => {
      message = Buffer.from(bytes);
      return true;
    };
    Object.assign(this.#channel, { write });
    try {
      producer.send(Buffer.alloc(SAMPLE_BYTES));
    } finally {
      delete (this.#channel as Partial<Writable>).write;
    }
    return message.subarray(0, message.length - SAMPLE_BYTES);
  }

  /** Adds a packet, whose bytes are copied, to the next write. */
  add(head: Buffer, packet: Buffer): void {
    const data = head.length + packet.length;
    const size = data + (-data & (ALIGNMENT - 1));
    if (this.#end + size > this.#slab.length) {
      this.flush();
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#start = this.#end = 0;
    }
    const slab = this.#slab;
    const at = this.#end;
    slab.set(head, at);
    slab.writeUInt32LE(size - SIZE_BYTES, at);
    slab.writeUInt32LE(packet.length, at + head.length - SIZE_BYTES);
    slab.set(packet, at + head.length);
    this.#end = at + size;
    slab.fill(0, at + data, this.#end);
  }

  /** Writes what was added, which must be before mediasoup writes to the channel again. */
  flush(): void {
    if (this.#start === this.#end) return;
    this.#channel.write(this.#slab.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}
