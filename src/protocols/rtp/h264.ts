import { isParameterSet, nalType, NAL, parseAvcConfig } from '../../codecs/h264.ts';
import { nalUnits } from '../../codecs/nal.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track, VideoTrack } from '../../core/track.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

const STAP_A = 24;
const FU_A = 28;
const FU_START = 0x80;
const FU_END = 0x40;

/**
 * H.264 access units to RTP payloads, packetization-mode 1 (RFC 6184): small NAL units share a STAP-A,
 * those that fit a packet travel alone, larger ones as FU-A. The track's parameter sets stand in front of
 * every key frame, in one STAP-A with each other.
 */
export class H264Packetizer {
  #track: Track | undefined;
  #parameterSets: readonly Buffer[] = [];
  /** Bytes of the STAP-A in the sink, how many units it holds, and their highest importance (NRI). */
  #size = 0;
  #units = 0;
  #nri = 0;

  /** @throws BitstreamError on malformed NAL units or decoder configuration */
  packetize(packet: Packet, sink: PayloadSink): void {
    if (packet.track !== this.#track) this.#configure(packet.track);
    this.#units = 0;
    // key frames may bring sets of their own, which are all that they need
    if (packet.key && !isParameterSet(packet.data.subarray(4, 5)))
      for (const nal of this.#parameterSets) this.#add(nal, sink, false);
    let held: Buffer | undefined;
    for (const nal of nalUnits(packet.data)) {
      if (isSkipped(nal)) continue;
      if (held !== undefined) this.#add(held, sink, false);
      held = nal;
    }
    if (held !== undefined) this.#add(held, sink, true);
    else this.#flush(sink, true);
  }

  #configure(track: Track): void {
    const { config } = track as VideoTrack;
    const parsed = config === undefined ? undefined : parseAvcConfig(config);
    this.#parameterSets = parsed === undefined ? [] : [...parsed.sps, ...parsed.spsExtensions, ...parsed.pps];
    this.#track = track;
  }

  #add(nal: Buffer, sink: PayloadSink, last: boolean): void {
    const fits = (this.#units === 0 ? 1 : this.#size) + 2 + nal.length <= MAX_PAYLOAD;
    if (!fits) {
      this.#flush(sink, false);
      if (1 + 2 + nal.length > MAX_PAYLOAD) {
        sendLarge(nal, sink, last);
        return;
      }
    }
    if (this.#units === 0) {
      this.#size = 1;
      this.#nri = 0;
    }
    sink.payload.writeUInt16BE(nal.length, this.#size);
    nal.copy(sink.payload, this.#size + 2);
    this.#size += 2 + nal.length;
    this.#units++;
    this.#nri = Math.max(this.#nri, (nal[0] as number) & 0x60);
    if (last) this.#flush(sink, true);
  }

  #flush(sink: PayloadSink, marker: boolean): void {
    if (this.#units === 0) return;
    if (this.#units === 1) {
      sink.payload.copyWithin(0, 3, this.#size);
      sink.send(this.#size - 3, marker);
    } else {
      sink.payload[0] = this.#nri | STAP_A;
      sink.send(this.#size, marker);
    }
    this.#units = 0;
  }
}

/** Delimiters and filler say nothing to a decoder. */
function isSkipped(nal: Buffer): boolean {
  const type = nalType(nal);
  return type === NAL.delimiter || type === NAL.filler;
}

/** One NAL unit that fits no STAP-A: alone when it fits a packet, else in fragments of equal size. */
function sendLarge(nal: Buffer, sink: PayloadSink, last: boolean): void {
  const { payload } = sink;
  if (nal.length <= MAX_PAYLOAD) {
    nal.copy(payload, 0);
    sink.send(nal.length, last);
    return;
  }
  const header = nal[0] as number;
  const total = nal.length - 1;
  const size = Math.ceil(total / Math.ceil(total / (MAX_PAYLOAD - 2)));
  for (let at = 1; at < nal.length; at += size) {
    const end = Math.min(nal.length, at + size);
    payload[0] = (header & 0xe0) | FU_A;
    payload[1] = (at === 1 ? FU_START : 0) | (end === nal.length ? FU_END : 0) | (header & 0x1f);
    nal.copy(payload, 2, at, end);
    sink.send(2 + end - at, last && end === nal.length);
  }
}
