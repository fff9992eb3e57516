import type { Packet } from '../../core/packet.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

const DESCRIPTOR_SIZE = 4;
const EXTENDED = 0x80;
const START_OF_PARTITION = 0x10;
const HAS_PICTURE_ID = 0x80;

/** VP8 frames to RTP payloads with a 15-bit picture id (RFC 7741 section 4.2). */
export class Vp8Packetizer {
  #pictureId: number;

  /** @param pictureId of the first frame */
  constructor(pictureId = 0) {
    this.#pictureId = pictureId & 0x7fff;
  }

  packetize({ data }: Packet, sink: PayloadSink): void {
    const room = MAX_PAYLOAD - DESCRIPTOR_SIZE;
    const size = Math.ceil(data.length / Math.max(1, Math.ceil(data.length / room)));
    for (let at = 0; at < data.length; at += size) {
      const end = Math.min(data.length, at + size);
      sink.payload[0] = EXTENDED | (at === 0 ? START_OF_PARTITION : 0);
      sink.payload[1] = HAS_PICTURE_ID;
      sink.payload.writeUInt16BE(0x8000 | this.#pictureId, 2);
      data.copy(sink.payload, DESCRIPTOR_SIZE, at, end);
      sink.send(DESCRIPTOR_SIZE + end - at, end === data.length);
    }
    this.#pictureId = (this.#pictureId + 1) & 0x7fff;
  }
}
