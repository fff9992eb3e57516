import type { Depacketizer, FrameSink } from './depacketizer.ts';
import { Av1Format } from './av1.ts';
import { RtpError } from './error.ts';
import { numberOf, type RtpFormat } from './format.ts';
import { FrameAssembler } from './frame-assembler.ts';
import { H264Format } from './h264.ts';
import { H265Format } from './h265.ts';
import { JoinedFormat } from './joined.ts';
import { LatmAudio } from './latm.ts';
import { MpegAudio } from './mpeg-audio.ts';
import { Mpeg4Audio } from './mpeg4-audio.ts';
import { readVp8 } from './vp8.ts';
import { readVp9 } from './vp9.ts';
import { WholeFrames } from './whole.ts';

type Create = (format: RtpFormat, sink: FrameSink) => Depacketizer;

const INTERLEAVED_MODE = 2;

const h265: Create = (format, sink) => {
  if ((numberOf(format, 'sprop-max-don-diff') ?? 0) > 0) throw new RtpError('interleaved H.265');
  return new FrameAssembler(new H265Format(), sink);
};
const whole: Create = (_, sink) => new WholeFrames(sink);

/** By encoding name, in upper case. */
const FORMATS: Readonly<Record<string, Create>> = {
  H264: (format, sink) => {
    if (numberOf(format, 'packetization-mode') === INTERLEAVED_MODE) throw new RtpError('interleaved H.264');
    return new FrameAssembler(new H264Format(), sink);
  },
  H265: h265,
  HEVC: h265,
  VP8: (_, sink) => new FrameAssembler(new JoinedFormat(readVp8), sink),
  VP9: (_, sink) => new FrameAssembler(new JoinedFormat(readVp9), sink),
  AV1: (_, sink) => new FrameAssembler(new Av1Format(), sink),
  OPUS: whole,
  PCMA: whole,
  PCMU: whole,
  G722: whole,
  MP2T: whole,
  MPA: ({ clockRate }, sink) => new MpegAudio(clockRate, sink),
  'MP4A-LATM': (format, sink) => new LatmAudio(format, sink),
  'MPEG4-GENERIC': (format, sink) => new Mpeg4Audio(format, sink),
};

/** Whether streams of a payload format can be taken, in one form at least. */
export function isPayloadFormat(encoding: string): boolean {
  return Object.hasOwn(FORMATS, encoding.toUpperCase());
}

/** @throws RtpError for a payload format, or a form of one, that is not taken */
export function createDepacketizer(format: RtpFormat, sink: FrameSink): Depacketizer {
  const name = format.encoding.toUpperCase();
  const create = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  if (create === undefined) throw new RtpError(`the payload format ${format.encoding} is not supported`);
  return create(format, sink);
}
