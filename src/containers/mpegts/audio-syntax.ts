import { LatmReader, loasBytes } from '../../codecs/aac-latm.ts';
import { adtsBytes, parseAdtsHeader } from '../../codecs/aac-adts.ts';
import { configOfAdts } from '../../codecs/aac-program.ts';
import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { parseAc3Frame, readAc3Frame } from '../../codecs/ac3.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { parseMpegAudioFrame, readMpegAudioFrame } from '../../codecs/mpeg-audio.ts';
import { packetSamples } from '../../codecs/opus.ts';
import type { AudioCodec } from '../../core/track.ts';
import type { TsForm } from './elementary.ts';
import { readOpusUnit } from './opus.ts';

/** Audio frame in memory of its own. */
export interface AudioFrame {
  readonly codec: AudioCodec;
  readonly data: Buffer;
  /** Decoder configuration; the same object as long as it does not change. */
  readonly header?: Buffer;
  /** Duration in seconds. */
  readonly seconds: number;
}

/** Framing of one form of audio. */
export interface AudioSyntax {
  /** First byte of each frame, to search for. */
  readonly sync: number;
  /**
   * Bytes of the frame at `at`; 0 if none starts there, undefined if more bytes are needed to decide. Called for any
   * byte.
   */
  bytes(data: Buffer, at: number): number | undefined;
  /** Unpacks a whole frame. @throws BitstreamError */
  frames(frame: Buffer): readonly AudioFrame[];
}

export type AudioForm = Extract<TsForm, 'ADTS' | 'LATM' | 'MPEG audio' | 'AC-3' | 'Opus'>;

/** @param header of the stream, if its PMT has one */
export function audioSyntax(form: AudioForm, header: Buffer | undefined): AudioSyntax {
  switch (form) {
    case 'ADTS':
      return new Adts();
    case 'LATM':
      return new Latm();
    case 'MPEG audio':
      return MPEG_AUDIO;
    case 'AC-3':
      return AC3;
    case 'Opus':
      return opus(header);
  }
}

class Adts implements AudioSyntax {
  readonly sync = 0xff;
  #config: Buffer | undefined;

  bytes(data: Buffer, at: number): number | undefined {
    return adtsBytes(data, at);
  }

  frames(frame: Buffer): AudioFrame[] {
    const adts = parseAdtsHeader(frame);
    if (adts.blocks > 1) throw new BitstreamError('an ADTS frame holds several raw data blocks');
    const data = Buffer.from(frame.subarray(adts.headerLength));
    if (data.length === 0) return [];
    // the channels of an earlier frame still hold
    if (adts.channelConfiguration !== 0 || this.#config === undefined) this.#follow(configOfAdts(adts, data));
    return [{ codec: 'AAC', data, header: this.#config as Buffer, seconds: 1024 / adts.samplerate }];
  }

  #follow(config: Buffer): void {
    if (this.#config?.equals(config) !== true) this.#config = config;
  }
}

class Latm implements AudioSyntax {
  readonly sync = 0x56;
  readonly #reader = new LatmReader();
  #config: Buffer | undefined;
  #seconds = 0;

  bytes(data: Buffer, at: number): number | undefined {
    return loasBytes(data, at);
  }

  frames(frame: Buffer): AudioFrame[] {
    const frames = this.#reader.frames(frame);
    const header = this.#reader.config;
    if (header === undefined) return [];
    if (header !== this.#config) {
      const { samplesPerFrame, samplerate } = parseAudioSpecificConfig(header);
      this.#seconds = samplesPerFrame / samplerate;
      this.#config = header;
    }
    return frames.map((data) => ({ codec: 'AAC', data, header, seconds: this.#seconds }));
  }
}

const MPEG_AUDIO: AudioSyntax = {
  sync: 0xff,
  bytes: (data, at) => (at + 4 > data.length ? undefined : (readMpegAudioFrame(data, at)?.bytes ?? 0)),
  frames: (frame) => {
    const { layer, samplesPerFrame, samplerate } = parseMpegAudioFrame(frame);
    return [{ codec: layer === 2 ? 'MP2' : 'MP3', data: Buffer.from(frame), seconds: samplesPerFrame / samplerate }];
  },
};

const AC3_HEADER_BYTES = 8;
const ENHANCED = 10;
/** strmtyp of a frame that adds channels to the one before (ETSI TS 102 366 annex E.1.3.1.1). */
const DEPENDENT = 1;
const MAX_DEPENDENT = 8;

const AC3: AudioSyntax = {
  sync: 0x0b,
  bytes: (data, at) => {
    if (at + AC3_HEADER_BYTES > data.length) return undefined;
    let bytes = readAc3Frame(data, at)?.bytes ?? 0;
    for (let more = 0; bytes > 0 && more < MAX_DEPENDENT && isDependent(data, at + bytes); more++) {
      bytes += readAc3Frame(data, at + bytes)?.bytes ?? 0;
    }
    return bytes;
  },
  frames: (frame) => {
    const { codec, samplesPerFrame, samplerate } = parseAc3Frame(frame);
    return [{ codec, data: Buffer.from(frame), seconds: samplesPerFrame / samplerate }];
  },
};

function isDependent(data: Buffer, at: number): boolean {
  return (
    at + AC3_HEADER_BYTES <= data.length &&
    data.readUInt16BE(at) === 0x0b77 &&
    data.readUInt8(at + 5) >> 3 > ENHANCED &&
    data.readUInt8(at + 2) >> 6 === DEPENDENT
  );
}

const OPUS_RATE = 48_000;

function opus(header: Buffer | undefined): AudioSyntax {
  return {
    sync: 0x7f,
    bytes: (data, at) => {
      const unit = readOpusUnit(data, at);
      return unit === 'none' ? 0 : unit && unit.end - at;
    },
    frames: (frame) => {
      const unit = readOpusUnit(frame, 0);
      if (unit === undefined || unit === 'none' || unit.packet.length === 0) return [];
      const { packet } = unit;
      return [
        {
          codec: 'OPUS',
          data: Buffer.from(packet),
          seconds: packetSamples(packet) / OPUS_RATE,
          ...(header && { header }),
        },
      ];
    },
  };
}
