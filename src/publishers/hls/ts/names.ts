/** File names of HLS with MPEG-TS (docs/compatibility.md#hls): a variant is an opaque number. */
const LIST = /^medialist_(\d+)_hls\.m3u8$/;
const SEGMENT = /^seg_(\d+)_(\d{1,15})_hls\.(?:ts|vtt)$/;

export function listName(variant: string): string {
  return `medialist_${variant}_hls.m3u8`;
}

export function segmentName(variant: string, msn: number): string {
  return `seg_${variant}_${msn}_hls.ts`;
}

/** Name of a segment of subtitles. */
export function subtitleName(id: string, msn: number): string {
  return `seg_${id}_${msn}_hls.vtt`;
}

export function isSubtitleName(name: string): boolean {
  return name.endsWith('.vtt');
}

/** Reads a file name of a media playlist, or of a segment with its number; undefined for any other name. */
export function readName(name: string): { readonly variant: string; readonly msn?: number } | undefined {
  const [, list] = LIST.exec(name) ?? [];
  if (list !== undefined) return { variant: list };
  const [, variant, msn] = SEGMENT.exec(name) ?? [];
  return variant === undefined ? undefined : { variant, msn: Number(msn) };
}
