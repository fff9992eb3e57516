import type { Timebase } from '../../core/timebase.ts';

interface StreamBase {
  /** The four characters that name the codec, as AVI does, or for sound the two bytes of WAV and two that are 0. */
  readonly codecTag: string;
  readonly timebase: Timebase;
  /** What the decoder is told in front of the first frame. */
  readonly extradata: Buffer;
  /** Frames that can precede another in decoding and follow it in output. */
  readonly decodeDelay: number;
}

interface VideoStream extends StreamBase {
  readonly kind: 'video';
  readonly width: number;
  readonly height: number;
  /** Frames per second, for encoders that count by it. Told where it is given, never read. */
  readonly framerate?: number;
}

interface AudioStream extends StreamBase {
  readonly kind: 'audio';
  readonly samplerate: number;
  readonly channels: number;
}

/** What is neither, such as ID3 tags (`userdata` of the specification). */
interface DataStream extends StreamBase {
  readonly kind: 'data';
}

/** A NUT stream header. */
export type NutStream = VideoStream | AudioStream | DataStream;

export const ID = Buffer.from('nut/multimedia container\0', 'latin1');

/** First letter of every start code, and so no frame code. */
export const N = 0x4e;

/** Start codes of packets, as hexadecimal text. */
export const START = Object.freeze({
  main: '4e4d7a561f5f04ad',
  stream: '4e5311405bf2f9db',
  syncpoint: '4e4be4adeeca4569',
  index: '4e58dd672f23e64e',
  info: '4e49ab68b596ba78',
});

/** A packet longer than this has a checksum of its head. */
export const LONG_PACKET = 4096;

/** Classes of streams. */
export const CLASS = Object.freeze({ video: 0, audio: 1, data: 3 });

/** Flags of frame codes and frame heads. */
export const FLAG = Object.freeze({
  key: 1,
  endOfRelevance: 2,
  codedPts: 8,
  streamId: 16,
  sizeMsb: 32,
  checksum: 64,
  reserved: 128,
  sideData: 256,
  headerIndex: 1024,
  matchTime: 2048,
  coded: 4096,
  invalid: 8192,
});
