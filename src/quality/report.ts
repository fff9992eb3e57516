import { MEMBER, NUMBERS, textOf } from './structured-fields.ts';

/** Longest report that is read, in characters. */
export const MAX_REPORT = 4096;
/** Keys of one report; both versions together define about 60. */
const MAX_KEYS = 100;

/**
 * One report of a player about its playback, by the keys of CTA-5004 and CTA-5004-B. Bitrates in kbit/s, times in milliseconds.
 * undefined: not in the report.
 */
export class Report {
  /** Bitrate of the requested object. */
  br: number | undefined;
  /** Highest bitrate that the stream has. */
  tb: number | undefined;
  /** Highest bitrate that the player may choose. */
  tpb: number | undefined;
  /** Buffered media; of several kinds, that of the shortest. */
  bl: number | undefined;
  /** Whether the buffer has run empty since the last report. */
  bs = false;
  /** Duration of that; of several kinds, the longest. */
  bsd: number | undefined;
  /** Time from the start of playback to the first frame. */
  msd: number | undefined;
  /** Frames dropped since the session began. */
  dfa: number | undefined;
  /** Latency of a live stream. */
  ltc: number | undefined;
  /** Playback rate. Players leave out 1. */
  pr: number | undefined;
  /** Type of the requested object: `v`, `a`, `av`, `m`, `i`. */
  ot: string | undefined;
  /** Kind of event of a report in event mode. */
  e: string | undefined;
  /** State of the player. */
  sta: string | undefined;
  /** Session of the player, by its own choice. */
  sid: string | undefined;
}

/** Keys that are numbers, with the greatest value that is believed, and which of several values counts. */
const NUMERIC: Readonly<Record<string, { readonly most: number; readonly of: 'greatest' | 'least' }>> = {
  br: { most: 10_000_000, of: 'greatest' },
  tb: { most: 10_000_000, of: 'greatest' },
  tpb: { most: 10_000_000, of: 'greatest' },
  bl: { most: 3_600_000, of: 'least' },
  bsd: { most: 3_600_000, of: 'greatest' },
  msd: { most: 3_600_000, of: 'greatest' },
  dfa: { most: 10_000_000, of: 'greatest' },
  ltc: { most: 86_400_000, of: 'greatest' },
  pr: { most: 16, of: 'greatest' },
};
const MAX_SESSION = 64;

/**
 * Reads a report: a dictionary of RFC 8941, which both versions are. Unknown keys are skipped, and values of the wrong type or size.
 * @returns undefined for malformed text
 */
export function readReport(text: string): Report | undefined {
  if (text.length > MAX_REPORT || text.length === 0) return undefined;
  const report = new Report();
  MEMBER.lastIndex = 0;
  for (let keys = 0; keys < MAX_KEYS; keys++) {
    const match = MEMBER.exec(text);
    if (match === null) return undefined;
    note(report, match[1] as string, match[2]);
    if (MEMBER.lastIndex < text.length) continue;
    return match[3] === '' ? report : undefined;
  }
  return undefined;
}

/** @param value as written; undefined for `true` without a value */
function note(report: Report, key: string, value: string | undefined): void {
  const numeric = NUMERIC[key];
  if (numeric !== undefined) {
    const number = value === undefined ? undefined : numberOf(value, numeric.of);
    if (number !== undefined && number >= 0 && number <= numeric.most) report[key as 'br'] = number;
    return;
  }
  switch (key) {
    case 'bs':
      report.bs = value === undefined || value === '?1';
      return;
    case 'sid':
      report.sid = textOf(value)?.slice(0, MAX_SESSION);
      return;
    case 'ot':
    case 'e':
    case 'sta':
      report[key] = value;
      return;
    default:
  }
}

/** Reads a number, or one of an inner list. */
function numberOf(value: string, of: 'greatest' | 'least'): number | undefined {
  if (!value.startsWith('(')) return NUMBERS.one.test(value) ? Number(value) : undefined;
  let found: number | undefined;
  for (const [, item = ''] of value.matchAll(NUMBERS.items)) {
    const number = Number(item);
    if (found === undefined || (of === 'greatest' ? number > found : number < found)) found = number;
  }
  return found;
}
