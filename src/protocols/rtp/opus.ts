import type { Packet } from '../../core/packet.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

/** Opus packets to RTP payloads, one each (RFC 7587 section 4.2). */
export class OpusPacketizer {
  /** @throws RangeError on a packet that fits no RTP packet: Opus has no fragments */
  packetize({ data }: Packet, sink: PayloadSink): void {
    if (data.length > MAX_PAYLOAD) throw new RangeError('an Opus packet is larger than an RTP packet');
    data.copy(sink.payload, 0);
    sink.send(data.length, false);
  }
}
