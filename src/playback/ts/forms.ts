import * as h264 from '../../codecs/h264.ts';
import * as h265 from '../../codecs/h265.ts';
import { tolerant } from '../../codecs/bits.ts';
import {
  audioSyntax,
  type AudioForm,
  type AudioFrame,
  type AudioSyntax,
} from '../../containers/mpegts/audio-syntax.ts';

/** Form in which a recorder writes H.264 and H.265: each NAL unit after four bytes of start code. */
const START_CODE = Buffer.of(0, 0, 0, 1);
const PREFIX_BYTES = 4;
/** Bytes in front of the first slice: messages may be long. */
export const MAX_HEAD_BYTES = 48 * 1024;
/** Bytes of a slice with the type of its frame, and its parameter sets. */
const SLICE_BYTES = 64;

export type VideoForm = 'H264' | 'H265';

interface NalKinds {
  isSlice(nal: Buffer): boolean;
  isSet(nal: Buffer): boolean;
  isDelimiter(nal: Buffer): boolean;
}

const KINDS: Readonly<Record<VideoForm, NalKinds>> = {
  H264: {
    isSlice: (nal) => h264.nalType(nal) >= h264.NAL.slice && h264.nalType(nal) <= h264.NAL.idr,
    isSet: h264.isParameterSet,
    isDelimiter: (nal) => h264.nalType(nal) === h264.NAL.delimiter,
  },
  H265: {
    isSlice: (nal) => h265.nalType(nal) <= h265.NAL.lastVcl,
    isSet: h265.isParameterSet,
    isDelimiter: (nal) => h265.nalType(nal) === h265.NAL.delimiter,
  },
};

/** NAL units in front of the first slice of a video frame. */
export interface FrameHead {
  /** NAL units without delimiters, up to the beginning of the first slice. */
  readonly nals: readonly Buffer[];
  readonly sets: readonly Buffer[];
  /** Bytes of delimiters, and of parameter sets, start codes included. */
  readonly delimiterBytes: number;
  readonly setBytes: number;
  /** Position of the first slice's start code. */
  readonly slice: number;
}

/** @param whole payload of a PES packet, or its beginning @returns undefined if no slice is near its beginning */
export function frameHead(form: VideoForm, whole: Buffer): FrameHead | undefined {
  const payload = whole.subarray(0, MAX_HEAD_BYTES);
  const kinds = KINDS[form];
  const nals: Buffer[] = [];
  const sets: Buffer[] = [];
  let delimiterBytes = 0;
  let setBytes = 0;
  if (payload.indexOf(START_CODE) !== 0) return undefined;
  for (let at = 0; at + PREFIX_BYTES < payload.length;) {
    const begin = at + PREFIX_BYTES;
    const brief = payload.subarray(begin, begin + SLICE_BYTES);
    if (kinds.isSlice(brief)) {
      nals.push(brief);
      return { nals, sets, delimiterBytes, setBytes, slice: at };
    }
    const next = payload.indexOf(START_CODE, begin);
    if (next < 0) return undefined;
    const nal = payload.subarray(begin, next);
    if (kinds.isDelimiter(nal)) delimiterBytes += next - at;
    else nals.push(nal);
    if (kinds.isSet(nal)) {
      sets.push(nal);
      setBytes += next - at;
    }
    at = next;
  }
  return undefined;
}

/** Bytes of a video frame as `frameOf` makes it. @param bytes of its payload */
export function frameBytes({ delimiterBytes, setBytes }: FrameHead, bytes: number, keepsSets: boolean): number {
  return bytes - delimiterBytes - (keepsSets ? 0 : setBytes);
}

/**
 * Converts a video frame to length-prefixed NAL units without delimiters, and without the parameter sets before its first slice.
 * @param keepsSets leaves those
 * @param memory for as many bytes
 * @returns undefined if it has no slice
 */
export function frameOf(
  form: VideoForm,
  payload: Buffer,
  keepsSets: boolean,
  memory: (bytes: number) => Buffer = Buffer.allocUnsafe,
): Buffer | undefined {
  const head = frameHead(form, payload);
  if (head === undefined) return undefined;
  const kinds = KINDS[form];
  const out = memory(frameBytes(head, payload.length, keepsSets));
  let to = 0;
  for (let at = 0; at < payload.length;) {
    const begin = at + PREFIX_BYTES;
    const next = payload.indexOf(START_CODE, begin);
    const end = next < 0 ? payload.length : next;
    const nal = payload.subarray(begin, end);
    const isDropped = at < head.slice && (kinds.isDelimiter(nal) || (!keepsSets && kinds.isSet(nal)));
    if (!isDropped) {
      to = out.writeUInt32BE(nal.length, to);
      to += nal.copy(out, to);
    }
    at = end;
  }
  return out;
}

/** Splits a payload into audio frames: each PES packet of a recorder has whole ones. What is none is left out. */
export function audioFramesOf(syntax: AudioSyntax, payload: Buffer): readonly AudioFrame[] {
  const frames: AudioFrame[] = [];
  for (let at = 0; at < payload.length;) {
    const bytes = syntax.bytes(payload, at);
    if (bytes === undefined || bytes === 0 || at + bytes > payload.length) break;
    const own = tolerant(() => syntax.frames(payload.subarray(at, at + bytes)));
    if (own === undefined) break;
    frames.push(...own);
    at += bytes;
  }
  return frames;
}

/** A stream of a program whose frames MP4 can carry. */
export type CarriedForm = VideoForm | Extract<AudioForm, 'ADTS' | 'MPEG audio' | 'Opus'>;

export function isCarried(form: string): form is CarriedForm {
  return form in KINDS || form === 'ADTS' || form === 'MPEG audio' || form === 'Opus';
}

export function isVideo(form: CarriedForm): form is VideoForm {
  return form in KINDS;
}

/** Samples of a PES packet, in the form of MP4. @param header of the stream, if its PMT has one @param memory for video, as of `frameOf` */
export function samplesReader(
  form: CarriedForm,
  header: Buffer | undefined,
  keepsSets: boolean,
  memory?: (bytes: number) => Buffer,
): (payload: Buffer) => readonly Buffer[] {
  if (!isVideo(form)) {
    const syntax = audioSyntax(form, header);
    return (payload) => audioFramesOf(syntax, payload).map(({ data }) => data);
  }
  return (payload) => {
    const frame = frameOf(form, payload, keepsSets, memory);
    return frame === undefined ? [] : [frame];
  };
}
