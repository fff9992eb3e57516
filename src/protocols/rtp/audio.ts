import type { Packet } from '../../core/packet.ts';
import type { AudioTrack } from '../../core/track.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

/** Longest access unit that 13 bits of an AU header can tell. */
const MAX_AAC_BYTES = 8191;
const AU_HEADERS = 4;
const MPA_HEADER = 4;
const AC3_HEADER = 2;
const MAX_FRAGMENTS = 255;
/** Frame types of AC-3 (RFC 4184 section 4.1.1): whole, the first with at least 5/8 of its frame, the first with less, further ones. */
const AC3 = { whole: 0, long: 1, short: 2, further: 3 };
/** Share of a frame that a receiver of AC-3 can begin to decode with. */
const AC3_SHARE = 5 / 8;

/**
 * AAC access units to RTP payloads (RFC 3640, mode AAC-hbr): one each, with its size in front; one that is larger than a packet
 * in pieces that all tell the size of the whole.
 */
export class AacPacketizer {
  /** @throws RangeError on an access unit whose size does not fit its header */
  packetize({ data }: Packet, sink: PayloadSink): void {
    if (data.length > MAX_AAC_BYTES) throw new RangeError('an AAC frame is too large');
    inPieces(data, AU_HEADERS, sink, (payload) => {
      payload.writeUInt16BE(16, 0);
      payload.writeUInt16BE(data.length << 3, 2);
    });
  }
}

/** Frames of MPEG audio, layers II and III, to RTP payloads (RFC 2250 section 3.5). */
export class MpegAudioPacketizer {
  packetize({ data }: Packet, sink: PayloadSink): void {
    inPieces(data, MPA_HEADER, sink, (payload, at) => void payload.writeUInt32BE(at, 0), false);
  }
}

/** Frames of AC-3 to RTP payloads (RFC 4184 section 4). */
export class Ac3Packetizer {
  packetize({ data }: Packet, sink: PayloadSink): void {
    const room = MAX_PAYLOAD - AC3_HEADER;
    const pieces = Math.ceil(data.length / room);
    const isLong = room >= data.length * AC3_SHARE;
    inPieces(data, AC3_HEADER, sink, (payload, at) => {
      payload[0] = pieces === 1 ? AC3.whole : at > 0 ? AC3.further : isLong ? AC3.long : AC3.short;
      payload[1] = pieces;
    });
  }
}

/** Frames of Enhanced AC-3 to RTP payloads (RFC 4598 section 4). */
export class Eac3Packetizer {
  /** @throws RangeError on a frame of too many packets */
  packetize({ data }: Packet, sink: PayloadSink): void {
    const pieces = Math.ceil(data.length / (MAX_PAYLOAD - AC3_HEADER));
    if (pieces > MAX_FRAGMENTS) throw new RangeError('an E-AC-3 frame is too large');
    inPieces(data, AC3_HEADER, sink, (payload) => {
      payload[0] = pieces === 1 ? 0 : 1;
      payload[1] = pieces;
    });
  }
}

/** Frames of Opus to RTP payloads, one each (RFC 7587 section 4.2). */
export class OpusPacketizer {
  /** @throws RangeError on a frame that fits no RTP packet: the format has no fragments */
  packetize({ data }: Packet, sink: PayloadSink): void {
    if (data.length > MAX_PAYLOAD) throw new RangeError('a frame of OPUS is larger than an RTP packet');
    data.copy(sink.payload, 0);
    sink.send(data.length, false);
  }
}

/**
 * G.711 and G.722 to RTP payloads (RFC 3551 section 4.5): a byte of each channel for each tick of the clock, so any number of
 * ticks is a packet.
 */
export class TelephonyPacketizer {
  packetize({ data, track }: Packet, sink: PayloadSink): void {
    const channels = Math.max(1, (track as AudioTrack).channels);
    const room = MAX_PAYLOAD - (MAX_PAYLOAD % channels);
    for (let at = 0; at < data.length; at += room) {
      const end = Math.min(data.length, at + room);
      data.copy(sink.payload, 0, at, end);
      sink.send(end - at, false, at / channels);
    }
  }
}

/** Sends a frame in as few packets as it takes, each behind a header of `headBytes`. @param marks the last packet has the marker */
function inPieces(
  data: Buffer,
  headBytes: number,
  sink: PayloadSink,
  writeHead: (payload: Buffer, at: number) => void,
  marks = true,
): void {
  const room = MAX_PAYLOAD - headBytes;
  for (let at = 0; at < data.length; at += room) {
    const end = Math.min(data.length, at + room);
    writeHead(sink.payload, at);
    data.copy(sink.payload, headBytes, at, end);
    sink.send(headBytes + end - at, marks && end === data.length);
  }
}
