import type { Timebase } from '../../core/timebase.ts';
import { NutError } from './error.ts';
import { CLASS, type NutStream } from './format.ts';
import { readFrameCodes, type FrameCode } from './frame-codes.ts';
import type { VlcReader } from './vlc.ts';

const MAX_STREAMS = 64;
const MAX_ELISION_BYTES = 1024;
const MAX_EXTRADATA = 1024 * 1024;
const MAX_CODEC_TAG = 64;
const MAX_TIMEBASE = 2 ** 31 - 1;
const MAX_DECODE_DELAY = 32;
const MAX_PTS_SHIFT = 16;
const MAX_SIDE = 65_535;
const MAX_SAMPLERATE = 10_000_000;
const MAX_CHANNELS = 255;

export interface NutMain {
  readonly streams: number;
  readonly timebases: readonly Timebase[];
  readonly codes: readonly FrameCode[];
  /** Elision headers: bytes that are left out at the beginning of frames; the first is empty. */
  readonly elided: readonly Buffer[];
}

/** Stream header, with the values that only its reader needs. */
export interface NutStreamHeader {
  readonly index: number;
  readonly stream: NutStream;
  /** Times below two to the power of this are the lowest bits of a time. */
  readonly ptsShift: number;
}

/** Reads the content of a main header packet. @throws NutError */
export function readMain(reader: VlcReader): NutMain {
  const version = reader.v();
  if (version < 3 || version > 4) throw new NutError(`NUT of version ${version}`);
  if (version > 3) reader.v();
  const streams = reader.bounded(MAX_STREAMS, 'the count of streams');
  // max_distance serves the search for the next syncpoint behind damage
  reader.v();
  const timebases = Array.from({ length: reader.bounded(MAX_STREAMS, 'the count of timebases') }, () => {
    const num = reader.bounded(MAX_TIMEBASE, 'a timebase');
    const den = reader.bounded(MAX_TIMEBASE, 'a timebase');
    if (num === 0 || den === 0) throw new NutError('a timebase is 0');
    return { num, den };
  });
  if (streams === 0 || timebases.length === 0) throw new NutError('NUT without streams or timebases');
  const codes = readFrameCodes(reader, streams);
  const elided = [Buffer.alloc(0)];
  let bytes = 0;
  for (let left = reader.bounded(127, 'the count of elision headers'); left > 0; left--) {
    const header = Buffer.from(reader.vb(MAX_ELISION_BYTES, 'an elision header'));
    bytes += header.length;
    elided.push(header);
  }
  if (bytes > MAX_ELISION_BYTES) throw new NutError('the elision headers are too long');
  if (codes.some(({ headerIndex }) => headerIndex >= elided.length)) throw new NutError('an elision header is missing');
  if (reader.short) throw new NutError('the main header ends too early');
  return { streams, timebases, codes, elided };
}

/** Reads the content of a stream header packet. @throws NutError */
export function readStream(reader: VlcReader, main: NutMain): NutStreamHeader {
  const index = reader.bounded(main.streams - 1, 'the number of a stream');
  const streamClass = reader.v();
  const codecTag = reader.vb(MAX_CODEC_TAG, 'a codec tag').toString('latin1');
  const timebase = main.timebases[reader.v()];
  if (timebase === undefined) throw new NutError('a stream has no timebase');
  const ptsShift = reader.bounded(MAX_PTS_SHIFT, 'msb_pts_shift');
  // max_pts_distance decides which frames have checksums
  reader.v();
  const decodeDelay = reader.bounded(MAX_DECODE_DELAY, 'the decode delay');
  reader.v();
  const extradata = Buffer.from(reader.vb(MAX_EXTRADATA, 'the codec specific data'));
  const common = { codecTag, timebase, extradata, decodeDelay };
  const stream = readClass(reader, common, streamClass);
  if (reader.short) throw new NutError('a stream header ends too early');
  return { index, stream, ptsShift };
}

type Common = Pick<NutStream, 'codecTag' | 'timebase' | 'extradata' | 'decodeDelay'>;

function readClass(reader: VlcReader, common: Common, streamClass: number): NutStream {
  if (streamClass === CLASS.video) return readVideo(reader, common);
  if (streamClass === CLASS.audio) return readAudio(reader, common);
  if (streamClass === CLASS.data) return { kind: 'data', ...common };
  throw new NutError('a stream is neither video nor audio nor data');
}

function readVideo(reader: VlcReader, common: Common): NutStream {
  const width = reader.bounded(MAX_SIDE, 'the width');
  const height = reader.bounded(MAX_SIDE, 'the height');
  return { kind: 'video', ...common, width, height };
}

function readAudio(reader: VlcReader, common: Common): NutStream {
  const samplerate = Math.round(reader.bounded(MAX_SAMPLERATE, 'the sampling rate') / Math.max(1, reader.v()));
  return { kind: 'audio', ...common, samplerate, channels: reader.bounded(MAX_CHANNELS, 'the count of channels') };
}
