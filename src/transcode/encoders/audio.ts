import type { AudioEncoding } from '../encoding.ts';

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  aac: ['-profile:a', 'aac_low'],
  libfdk_aac: ['-profile:a', 'aac_low'],
  libopus: ['-application', 'audio', '-frame_duration', '20', '-vbr', 'constrained'],
};

/** Options of an audio encoder. @param encoder ffmpeg's name */
export function audioOptions({ bitrate }: AudioEncoding, encoder: string): string[] {
  return ['-c:a', encoder, '-b:a', String(bitrate), ...(OPTIONS[encoder] ?? [])];
}
