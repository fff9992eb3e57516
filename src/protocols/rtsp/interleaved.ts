const DOLLAR = 0x24;
const HEAD_BYTES = 4;
/** Room for the heads and headers of the packets of a frame, by its size. */
const BYTES_BESIDE = 1024;
const SHARE_BESIDE = 1 / 16;

/** Packets of one frame, each behind the head by which it is found between messages (RFC 2326 section 10.12), in one buffer. */
export class InterleavedFrame {
  #data: Buffer = Buffer.alloc(0);
  #size = 0;

  /** Begins a frame. @param bytes of the frame */
  begin(bytes: number): void {
    this.#data = Buffer.allocUnsafe(bytes + BYTES_BESIDE + Math.ceil(bytes * SHARE_BESIDE));
    this.#size = 0;
  }

  /** Copies a packet. */
  add(channel: number, packet: Buffer): void {
    this.#reserve(HEAD_BYTES + packet.length);
    writeHead(this.#data, this.#size, channel, packet.length);
    packet.copy(this.#data, this.#size + HEAD_BYTES);
    this.#size += HEAD_BYTES + packet.length;
  }

  /** The frame, a buffer that is not used again. */
  end(): Buffer {
    return this.#data.subarray(0, this.#size);
  }

  #reserve(bytes: number): void {
    if (this.#size + bytes <= this.#data.length) return;
    const data = Buffer.allocUnsafe(2 * (this.#size + bytes));
    this.#data.copy(data, 0, 0, this.#size);
    this.#data = data;
  }
}

/** Returns one packet behind its head. */
export function interleave(channel: number, packet: Buffer): Buffer {
  const data = Buffer.allocUnsafe(HEAD_BYTES + packet.length);
  writeHead(data, 0, channel, packet.length);
  packet.copy(data, HEAD_BYTES);
  return data;
}

/** Copies interleaved packets for another channel. */
export function onChannel(frame: Buffer, channel: number): Buffer {
  const copy = Buffer.from(frame);
  for (let at = 0; at < copy.length; at += HEAD_BYTES + copy.readUInt16BE(at + 2)) copy[at + 1] = channel;
  return copy;
}

/** Where the packet after a head begins and ends. @param at place of the head */
export function packetAt(frame: Buffer, at: number): readonly [start: number, end: number] {
  return [at + HEAD_BYTES, at + HEAD_BYTES + frame.readUInt16BE(at + 2)];
}

function writeHead(data: Buffer, at: number, channel: number, length: number): void {
  data[at] = DOLLAR;
  data[at + 1] = channel;
  data.writeUInt16BE(length, at + 2);
}
