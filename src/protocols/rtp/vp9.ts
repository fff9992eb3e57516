import type { Packet } from '../../core/packet.ts';
import type { VideoTrack } from '../../core/track.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

const HAS_PICTURE_ID = 0x80;
const INTER_PREDICTED = 0x40;
const START_OF_FRAME = 0x08;
const END_OF_FRAME = 0x04;
const HAS_SCALABILITY = 0x02;
/** Scalability structure of one spatial layer with its size (N_S = 0, Y = 1, G = 0). */
const ONE_LAYER_WITH_SIZE = 0x10;
const DESCRIPTOR_SIZE = 3;
const SCALABILITY_SIZE = 5;

/** VP9 frames to RTP payloads, non-flexible mode, one layer, 15-bit picture id (RFC 9628 section 4.2). */
export class Vp9Packetizer {
  #pictureId: number;

  /** @param pictureId of the first frame */
  constructor(pictureId = 0) {
    this.#pictureId = pictureId & 0x7fff;
  }

  packetize({ data, key, track }: Packet, sink: PayloadSink): void {
    const { payload } = sink;
    for (let at = 0; at < data.length;) {
      const structure = key && at === 0;
      const head = DESCRIPTOR_SIZE + (structure ? SCALABILITY_SIZE : 0);
      const end = Math.min(data.length, at + MAX_PAYLOAD - head);
      payload[0] =
        HAS_PICTURE_ID |
        (key ? 0 : INTER_PREDICTED) |
        (at === 0 ? START_OF_FRAME : 0) |
        (end === data.length ? END_OF_FRAME : 0) |
        (structure ? HAS_SCALABILITY : 0);
      payload.writeUInt16BE(0x8000 | this.#pictureId, 1);
      if (structure) {
        const { width, height } = track as VideoTrack;
        payload[3] = ONE_LAYER_WITH_SIZE;
        payload.writeUInt16BE(width, 4);
        payload.writeUInt16BE(height, 6);
      }
      data.copy(payload, head, at, end);
      sink.send(head + end - at, end === data.length);
      at = end;
    }
    this.#pictureId = (this.#pictureId + 1) & 0x7fff;
  }
}
