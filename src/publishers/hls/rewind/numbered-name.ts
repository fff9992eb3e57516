/** File name up to the media sequence number, the number, and the rest. */
const NUMBERED = /^([a-z]+_[^_]+_)(\d{1,15})(_.*)$/;

/** Numbers in the file names of segments: those of one media playlist differ in nothing else. */
export interface NumberedName {
  /** The name without its number. */
  readonly shape: string;
  readonly msn: number;
}

/** Splits the file name of a segment; undefined for any other name. */
export function numberedName(name: string): NumberedName | undefined {
  const [, before, msn, after] = NUMBERED.exec(name) ?? [];
  return msn === undefined ? undefined : { shape: `${before}*${after}`, msn: Number(msn) };
}

/** File name of a segment. */
export function nameOf(shape: string, msn: number): string {
  return shape.replace('*', String(msn));
}
