import { parseAudioSpecificConfig } from '../../../codecs/aac.ts';
import { BitReader, BitstreamError, tolerant } from '../../../codecs/bits.ts';
import type { Depacketizer, FrameSink } from './depacketizer.ts';
import { RtpError } from './error.ts';
import { numberOf, type RtpFormat } from './format.ts';
import type { RtpPacket } from './packet.ts';

/** Bits of the fields in an AU header, in their order (RFC 3640 section 3.2.1.1). */
interface HeaderFields {
  readonly size: number;
  readonly index: number;
  readonly indexDelta: number;
  readonly presentationDelta: number;
  readonly decodingDelta: number;
  readonly randomAccess: number;
  readonly streamState: number;
}

const HBR = { size: 13, index: 3, indexDelta: 3 };
const LBR = { size: 6, index: 2, indexDelta: 2 };
/** Bits of an AU header of AAC-hbr, with its index. */
const HBR_HEADER_BITS = 16;
const USUAL_SAMPLES = 1024;
/** Access units of a packet: no sender collects two seconds of audio. */
const MAX_UNITS = 128;
const MAX_UNIT_BYTES = 64 * 1024;

/**
 * AAC as mpeg4-generic (RFC 3640): modes AAC-hbr and AAC-lbr, and others with the same headers. Where the description gives
 * neither mode nor headers, packets show whether they have those of AAC-hbr.
 */
export class Mpeg4Audio implements Depacketizer {
  readonly #sink: FrameSink;
  #fields: HeaderFields;
  /** Whether packets have AU headers is still unknown. */
  #mustDetectHeaders: boolean;
  readonly #isConfigured: boolean;
  readonly #auxiliaryBits: number;
  /** Duration of an access unit, in RTP time. */
  readonly #step: number;
  #sizes: number[] = [];
  /** Received parts of a fragmented unit, and its missing bytes. */
  #parts: Buffer[] = [];
  #missing = 0;
  #timestamp = 0;

  /** @throws RtpError for interleaved units, and other forms that are not taken */
  constructor(format: RtpFormat, sink: FrameSink) {
    this.#sink = sink;
    this.#fields = headerFields(format);
    const { mode, sizelength, config } = format.parameters;
    this.#mustDetectHeaders = mode === undefined && sizelength === undefined;
    this.#isConfigured = (config ?? '') !== '';
    this.#auxiliaryBits = numberOf(format, 'auxiliarydatasizelength') ?? 0;
    this.#step = unitStep(format);
  }

  push({ payload, timestamp, marker }: RtpPacket): void {
    if (payload.length === 0) return;
    try {
      if (this.#mustDetectHeaders) this.#detectHeaders(payload, marker);
      this.#take(payload, timestamp, marker);
    } catch (error) {
      if (!(error instanceof RtpError || error instanceof BitstreamError)) throw error;
      this.#forget();
      this.#sink.damaged(error.message);
    }
  }

  lose(): void {
    this.#forget();
    this.#sink.damaged('packets were lost');
  }

  #detectHeaders(payload: Buffer, marker: boolean): void {
    if (hasHbrHeaders(payload, marker)) {
      this.#fields = { ...this.#fields, ...HBR };
      this.#mustDetectHeaders = false;
      return;
    }
    // what has a configuration may have nothing else (RFC 3640 section 4.1: without `sizeLength` there are no headers)
    if (!this.#isConfigured) throw new RtpError('AAC without headers of its units and without a configuration');
  }

  #take(payload: Buffer, timestamp: number, marker: boolean): void {
    let at = this.#readHeaders(payload);
    const [first] = this.#sizes;
    if (first === undefined) return this.#sink.frame(payload.subarray(at), timestamp);
    if (this.#missing > 0 || at + first > payload.length)
      return this.#fragment(payload.subarray(at), first, timestamp, marker);
    let time = timestamp;
    for (const size of this.#sizes) {
      if (at + size > payload.length) throw new RtpError('an access unit is longer than its packet');
      if (size > 0) this.#sink.frame(payload.subarray(at, at + size), time);
      at += size;
      time = (time + this.#step) >>> 0;
    }
  }

  /** The sizes of the units. Answers where they begin. */
  #readHeaders(payload: Buffer): number {
    this.#sizes.length = 0;
    const { size, index, indexDelta } = this.#fields;
    let at = 0;
    if (size > 0) {
      if (payload.length < 2) throw new RtpError('an MPEG-4 payload is too short');
      const bits = payload.readUInt16BE(0);
      at = 2 + Math.ceil(bits / 8);
      const reader = new BitReader(payload.subarray(2, at));
      for (let end = bits - size; reader.position <= end;) {
        if (this.#sizes.length === MAX_UNITS) throw new RtpError('too many access units in a packet');
        this.#sizes.push(reader.read(size));
        if (reader.read(this.#sizes.length === 1 ? index : indexDelta) !== 0)
          throw new RtpError('interleaved access units');
        this.#skipOthers(reader);
      }
      if (this.#sizes.length === 0) throw new RtpError('an MPEG-4 payload without access units');
    }
    if (this.#auxiliaryBits === 0) return at;
    const auxiliary = new BitReader(payload.subarray(at));
    return at + Math.ceil((this.#auxiliaryBits + auxiliary.read(this.#auxiliaryBits)) / 8);
  }

  #skipOthers(reader: BitReader): void {
    const { presentationDelta, decodingDelta, randomAccess, streamState } = this.#fields;
    if (presentationDelta > 0 && reader.flag()) reader.skip(presentationDelta);
    if (decodingDelta > 0 && reader.flag()) reader.skip(decodingDelta);
    reader.skip(randomAccess + streamState);
  }

  /** Takes a piece of a unit that is larger than a packet; each carries the size of the whole. */
  #fragment(data: Buffer, size: number, timestamp: number, marker: boolean): void {
    if (size > MAX_UNIT_BYTES || this.#sizes.length > 1) throw new RtpError('an access unit is too large');
    if (this.#missing === 0) {
      this.#missing = size;
      this.#timestamp = timestamp;
    }
    if (timestamp !== this.#timestamp || data.length > this.#missing || data.length === 0) {
      throw new RtpError('a piece of an access unit that does not fit');
    }
    this.#parts.push(data);
    this.#missing -= data.length;
    if (this.#missing > 0) {
      if (marker) throw new RtpError('an access unit is incomplete');
      return;
    }
    const unit = Buffer.concat(this.#parts);
    this.#forget();
    this.#sink.frame(unit, timestamp);
  }

  #forget(): void {
    this.#parts = [];
    this.#missing = 0;
  }
}

/** Whether a payload begins with headers of AAC-hbr whose sizes are those of what follows, or of a unit in pieces. */
function hasHbrHeaders(payload: Buffer, marker: boolean): boolean {
  if (payload.length < 4) return false;
  const bits = payload.readUInt16BE(0);
  const units = bits / HBR_HEADER_BITS;
  const start = 2 + units * 2;
  if (!Number.isInteger(units) || units === 0 || units > MAX_UNITS || start > payload.length) return false;
  let bytes = 0;
  for (let at = 2; at < start; at += 2) {
    const header = payload.readUInt16BE(at);
    if ((header & 7) !== 0) return false;
    bytes += header >> 3;
  }
  const rest = payload.length - start;
  return bytes === rest || (units === 1 && bytes > rest && !marker);
}

function headerFields(format: RtpFormat): HeaderFields {
  const mode = format.parameters['mode']?.toLowerCase();
  // some cameras leave out the parameters that the mode implies
  const usual = mode === 'aac-hbr' ? HBR : mode === 'aac-lbr' ? LBR : { size: 0, index: 0, indexDelta: 0 };
  const bits = (name: string, otherwise = 0): number => {
    const value = numberOf(format, name) ?? otherwise;
    if (value > 32) throw new RtpError(`${name} is ${value}`);
    return value;
  };
  const size = bits('sizelength', usual.size);
  if (mode !== undefined && mode !== 'aac-hbr' && mode !== 'aac-lbr' && mode !== 'generic') {
    throw new RtpError('an MPEG-4 mode that is not AAC');
  }
  if ((numberOf(format, 'maxdisplacement') ?? 0) > 0) throw new RtpError('interleaved access units');
  bits('auxiliarydatasizelength');
  return {
    size,
    index: bits('indexlength', usual.index),
    indexDelta: bits('indexdeltalength', usual.indexDelta),
    presentationDelta: bits('ctsdeltalength'),
    decodingDelta: bits('dtsdeltalength'),
    randomAccess: Math.min(1, bits('randomaccessindication')),
    streamState: bits('streamstateindication'),
  };
}

function unitStep(format: RtpFormat): number {
  const constant = numberOf(format, 'constantduration');
  if (constant !== undefined && constant > 0) return constant;
  const config = tolerant(() => parseAudioSpecificConfig(Buffer.from(format.parameters['config'] ?? '', 'hex')));
  if (config === undefined) return USUAL_SAMPLES;
  return Math.round((config.samplesPerFrame * format.clockRate) / config.samplerate);
}
