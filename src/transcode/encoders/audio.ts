import type { AudioEncoding } from '../encoding.ts';

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  aac: ['-profile:a', 'aac_low'],
  libfdk_aac: ['-profile:a', 'aac_low'],
  libopus: ['-application', 'audio', '-frame_duration', '20', '-vbr', 'constrained'],
};

/** Bits per second of a channel from which a cheaper search costs no audible quality (test/bench/README.md). */
const AMPLE_BITRATE = 64_000;

const CHEAPER_SEARCH: Readonly<Record<string, readonly string[]>> = {
  aac: ['-aac_coder', 'fast'],
  // RFC 6716, 2.1.5: complexity, 10 by default in ffmpeg
  libopus: ['-compression_level', '7'],
};

/** Options of an audio encoder. @param encoder ffmpeg's name */
export function audioOptions({ bitrate, channels }: AudioEncoding, encoder: string): string[] {
  const search = bitrate >= AMPLE_BITRATE * channels ? CHEAPER_SEARCH[encoder] : undefined;
  return ['-c:a', encoder, '-b:a', String(bitrate), ...(OPTIONS[encoder] ?? []), ...(search ?? [])];
}
