import type { MediaClock } from './wall-time.ts';

/** A time in a stream. */
export interface Moment {
  /** Media time in seconds. */
  readonly time: number;
  /** Number of the timeline: media times of different epochs cannot be compared. */
  readonly epoch: number;
  readonly clock: MediaClock;
}

/** Milliseconds since the epoch. */
export function dateOf({ clock, time }: Moment): number {
  return Math.round(clock.at(time));
}

export function later({ time, ...rest }: Moment, seconds: number): Moment {
  return { ...rest, time: time + seconds };
}

/** Attributes of EXT-X-DATERANGE that carry SCTE 35 (RFC 8216bis 4.4.5.1.1). */
export type SpliceAttribute = 'SCTE35-OUT' | 'SCTE35-IN' | 'SCTE35-CMD';

export interface DateRangeFacts {
  /** Unique in the stream. */
  readonly id: string;
  readonly start: Moment;
  /** Seconds, as announced: the end may be another. */
  readonly planned?: number | undefined;
  /** Seconds, where they are certain: the range is over by itself. */
  readonly duration?: number | undefined;
  /** The splice_info_section that announced the range. */
  readonly splice?: { readonly attribute: SpliceAttribute; readonly section: Buffer };
  /** Further attributes. */
  readonly attributes?: readonly string[];
  /** Media sequence number of the segment that the tag precedes. */
  readonly msn: number;
}

interface Line {
  readonly msn: number;
  /** Applies to the next segment only, so that it is not repeated. */
  readonly ofSegment: boolean;
  readonly text: () => string;
}

/** The tags of one date range. Facts that become known later are in another tag with the same id. */
export class DateRange {
  readonly id: string;
  readonly start: Moment;
  readonly #planned: number | undefined;
  readonly #lines: Line[] = [];
  #end: Moment | undefined;
  #bytes = 0;

  constructor({ id, start, planned, duration, splice, attributes = [], msn }: DateRangeFacts) {
    this.id = id;
    this.start = start;
    this.#planned = planned;
    if (duration !== undefined) this.#end = later(start, duration);
    const more = [
      ...(planned === undefined ? [] : [`PLANNED-DURATION=${decimal(planned)}`]),
      // a point in time has none
      ...(duration === undefined || duration === 0 ? [] : [`DURATION=${decimal(duration)}`]),
      ...attributes,
    ]
      .map((attribute) => `,${attribute}`)
      .join('');
    this.#bytes += more.length;
    const last = this.#spliceText(splice);
    this.#lines.push({ msn, ofSegment: false, text: () => `${this.#head}${more}${last}\n` });
  }

  /** End of the range: the actual one, else the planned one; undefined while neither is known. */
  get end(): Moment | undefined {
    return this.#end ?? (this.#planned === undefined ? undefined : later(this.start, this.#planned));
  }

  /** Sum over the splice_info_sections in the tags and the further attributes. */
  get bytes(): number {
    return this.#bytes;
  }

  get isOpen(): boolean {
    return this.#end === undefined;
  }

  /** Ends the range, with a tag in front of a segment. @param section splice_info_section that ends it */
  finish(msn: number, end: Moment, section?: Buffer): void {
    this.#end = end;
    const splice = this.#spliceText(section && { attribute: 'SCTE35-IN', section });
    this.#lines.push({ msn, ofSegment: false, text: () => `${this.#head}${this.#duration(end)}${splice}\n` });
  }

  /** Ends the range where it starts, without a tag. */
  close(): void {
    this.#end = this.start;
  }

  /** Puts a line in front of a segment. */
  mark(msn: number, line: string): void {
    this.#lines.push({ msn, ofSegment: true, text: () => `${line}\n` });
  }

  at(msn: number): string {
    return this.#text((line) => line.msn === msn);
  }

  /** Tags in front of earlier segments. @param from media sequence number of the first of them; else all */
  before(msn: number, from = -Infinity): string {
    return this.#text((line) => line.msn >= from && line.msn < msn && !line.ofSegment);
  }

  #text(takes: (line: Line) => boolean): string {
    let text = '';
    for (const line of this.#lines) if (takes(line)) text += line.text();
    return text;
  }

  get #head(): string {
    return `#EXT-X-DATERANGE:ID="${this.id}",START-DATE="${new Date(dateOf(this.start)).toISOString()}"`;
  }

  #spliceText(splice: DateRangeFacts['splice']): string {
    if (splice === undefined) return '';
    const { attribute, section } = splice;
    this.#bytes += section.length;
    return `,${attribute}=0x${section.toString('hex').toUpperCase()}`;
  }

  #duration(end: Moment): string {
    const start = dateOf(this.start);
    const elapsed = end.epoch === this.start.epoch ? (end.time - this.start.time) * 1000 : dateOf(end) - start;
    const milliseconds = Math.max(0, Math.round(elapsed));
    const date = new Date(start + milliseconds).toISOString();
    return `,END-DATE="${date}",DURATION=${decimal(milliseconds / 1000)}`;
  }
}

/** A decimal of a playlist: at most three digits behind the point, none needless. */
export function decimal(value: number): string {
  return String(Number(value.toFixed(3)));
}
