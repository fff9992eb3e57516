import { nalUnits } from '../../codecs/nal.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track, VideoTrack } from '../../core/track.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

/** How the payload format of a codec puts NAL units into payloads. */
export interface NalForm {
  /** Bytes in front of the units of an aggregation packet, as many as a NAL unit's header has. */
  readonly headerBytes: number;
  /** Parameter sets in a track's configuration. @throws BitstreamError */
  setsOf(config: Buffer): readonly Buffer[];
  isParameterSet(nal: Buffer): boolean;
  /** Delimiters and filler say nothing to a decoder. */
  isSkipped(nal: Buffer): boolean;
  /** Combines what the header of an aggregation packet needs of its units. @param before of the units so far */
  merge(before: number | undefined, nal: Buffer): number;
  writeAggregation(payload: Buffer, merged: number): void;
  /** Writes the headers of a fragment. @returns their size */
  writeFragment(payload: Buffer, nal: Buffer, isFirst: boolean, isLast: boolean): number;
}

/** Length of a unit in an aggregation packet. */
const LENGTH_BYTES = 2;

/**
 * Access units of NAL units to RTP payloads: small units share an aggregation packet, those that fit a packet travel alone, larger
 * ones in fragments of equal size. The track's parameter sets stand in front of every key frame, in one packet with each other.
 */
export class NalPacketizer {
  readonly #form: NalForm;
  #track: Track | undefined;
  #parameterSets: readonly Buffer[] = [];
  /** Bytes of the aggregation packet in the sink, how many units it holds, and what its header needs of them. */
  #size = 0;
  #units = 0;
  #merged: number | undefined;

  constructor(form: NalForm) {
    this.#form = form;
  }

  /** @throws BitstreamError on malformed NAL units or decoder configuration */
  packetize(packet: Packet, sink: PayloadSink): void {
    if (packet.track !== this.#track) this.#configure(packet.track);
    this.#units = 0;
    // key frames may bring sets of their own, which are all that they need
    if (packet.key && !this.#form.isParameterSet(packet.data.subarray(4, 6)))
      for (const nal of this.#parameterSets) this.#add(nal, sink, false);
    let held: Buffer | undefined;
    for (const nal of nalUnits(packet.data)) {
      if (this.#form.isSkipped(nal)) continue;
      if (held !== undefined) this.#add(held, sink, false);
      held = nal;
    }
    if (held !== undefined) this.#add(held, sink, true);
    else this.#flush(sink, true);
  }

  #configure(track: Track): void {
    const { config } = track as VideoTrack;
    this.#parameterSets = config === undefined ? [] : this.#form.setsOf(config);
    this.#track = track;
  }

  #add(nal: Buffer, sink: PayloadSink, last: boolean): void {
    const { headerBytes } = this.#form;
    const fits = (this.#units === 0 ? headerBytes : this.#size) + LENGTH_BYTES + nal.length <= MAX_PAYLOAD;
    if (!fits) {
      this.#flush(sink, false);
      if (headerBytes + LENGTH_BYTES + nal.length > MAX_PAYLOAD) {
        this.#sendLarge(nal, sink, last);
        return;
      }
    }
    if (this.#units === 0) {
      this.#size = headerBytes;
      this.#merged = undefined;
    }
    sink.payload.writeUInt16BE(nal.length, this.#size);
    nal.copy(sink.payload, this.#size + LENGTH_BYTES);
    this.#size += LENGTH_BYTES + nal.length;
    this.#units++;
    this.#merged = this.#form.merge(this.#merged, nal);
    if (last) this.#flush(sink, true);
  }

  #flush(sink: PayloadSink, marker: boolean): void {
    if (this.#units === 0) return;
    if (this.#units === 1) {
      const start = this.#form.headerBytes + LENGTH_BYTES;
      sink.payload.copyWithin(0, start, this.#size);
      sink.send(this.#size - start, marker);
    } else {
      this.#form.writeAggregation(sink.payload, this.#merged as number);
      sink.send(this.#size, marker);
    }
    this.#units = 0;
  }

  /** One NAL unit that fits no aggregation packet: alone when it fits a packet, else in fragments. */
  #sendLarge(nal: Buffer, sink: PayloadSink, last: boolean): void {
    const { payload } = sink;
    if (nal.length <= MAX_PAYLOAD) {
      nal.copy(payload, 0);
      sink.send(nal.length, last);
      return;
    }
    const { headerBytes } = this.#form;
    const total = nal.length - headerBytes;
    const size = Math.ceil(total / Math.ceil(total / (MAX_PAYLOAD - headerBytes - 1)));
    for (let at = headerBytes; at < nal.length; at += size) {
      const end = Math.min(nal.length, at + size);
      const head = this.#form.writeFragment(payload, nal, at === headerBytes, end === nal.length);
      nal.copy(payload, head, at, end);
      sink.send(head + end - at, last && end === nal.length);
    }
  }
}
