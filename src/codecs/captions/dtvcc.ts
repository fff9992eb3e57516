/** Data of one caption service in a packet. */
interface ServiceBlock {
  /** 1 to 63. */
  readonly service: number;
  readonly data: Buffer;
}

/** Longest caption channel packet (CTA-708-E, 5): its size counts pairs of bytes, and 0 stands for 64. */
const MAX_BYTES = 128;
/** Service number after which another byte has the real one. */
const EXTENDED = 7;

/** Assembles the caption channel packets of CEA-708 from their pairs of bytes (CTA-708-E, section 5). */
export class DtvccPackets {
  readonly #packet = Buffer.alloc(MAX_BYTES);
  #length = 0;
  /** Bytes that the packet is to have; 0 outside of one. */
  #size = 0;

  /** @param isStart the pair begins a packet; what was incomplete is dropped. @returns blocks of a packet that is complete */
  push(isStart: boolean, first: number, second: number): ServiceBlock[] {
    if (isStart) {
      this.#size = (first & 0x3f || 64) * 2;
      this.#length = 0;
    }
    if (this.#size === 0) return [];
    this.#packet[this.#length++] = first;
    this.#packet[this.#length++] = second;
    if (this.#length < this.#size) return [];
    const blocks = blocksOf(this.#packet.subarray(1, this.#size));
    this.#size = 0;
    return blocks;
  }
}

/** Splits a packet without its header into service blocks (CTA-708-E, section 6.2), up to one that is malformed. */
function blocksOf(packet: Buffer): ServiceBlock[] {
  const blocks: ServiceBlock[] = [];
  for (let at = 0; at < packet.length;) {
    const header = packet[at++] as number;
    let service = header >> 5;
    const size = header & 0x1f;
    if (service === 0) break;
    if (service === EXTENDED && size > 0) service = (packet[at++] ?? 0) & 0x3f;
    if (at + size > packet.length || service === 0) break;
    // the buffer is used again
    if (size > 0) blocks.push({ service, data: Buffer.from(packet.subarray(at, at + size)) });
    at += size;
  }
  return blocks;
}
