import type { Timebase } from '../../core/timebase.ts';

interface StreamBase {
  /** Four characters of the codec, as in AVI, or for audio the two bytes of WAV and two zeros. */
  readonly codecTag: string;
  readonly timebase: Timebase;
  /** Decoder configuration. */
  readonly extradata: Buffer;
  /** Frames that can precede another in decoding and follow it in output. */
  readonly decodeDelay: number;
}

interface VideoStream extends StreamBase {
  readonly kind: 'video';
  readonly width: number;
  readonly height: number;
  /** Frames per second, for encoders that need it. Written if given, never read. */
  readonly framerate?: number;
}

interface AudioStream extends StreamBase {
  readonly kind: 'audio';
  readonly samplerate: number;
  readonly channels: number;
}

/** Data, such as ID3 tags (`userdata` of the specification). */
interface DataStream extends StreamBase {
  readonly kind: 'data';
}

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
