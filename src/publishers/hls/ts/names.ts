/** File names of HLS with MPEG-TS (docs/compatibility.md#hls): a variant is a number that says nothing. */
const LIST = /^medialist_(\d+)_hls\.m3u8$/;
const SEGMENT = /^seg_(\d+)_(\d{1,15})_hls\.ts$/;

export function listName(variant: string): string {
  return `medialist_${variant}_hls.m3u8`;
}

export function segmentName(variant: string, msn: number): string {
  return `seg_${variant}_${msn}_hls.ts`;
}

/** The variant, and the segment if it is one, that a file's name tells; undefined for any other name. */
export function readName(name: string): { readonly variant: string; readonly msn?: number } | undefined {
  const [, list] = LIST.exec(name) ?? [];
  if (list !== undefined) return { variant: list };
  const [, variant, msn] = SEGMENT.exec(name) ?? [];
  return variant === undefined ? undefined : { variant, msn: Number(msn) };
}
