import { dateOf, linesOf, type MediaPlaylist } from './media-playlist.ts';
import type { Report, Rule } from './rules.ts';

/** One date range: the attributes of all its tags. */
export interface DateRange {
  readonly at: number;
  readonly attributes: ReadonlyMap<string, string>;
}

/** Milliseconds by which an END-DATE may differ from START-DATE plus DURATION: both are rounded. */
const ROUNDED_MS = 1;

/** Joins the tags of each date range, by ID (4.4.5.1). @param differs rule that tags break which disagree */
export function joinRanges(
  tags: Iterable<readonly [string, DateRange]>,
  differs: Rule,
  report: Report,
): Map<string, DateRange> {
  const ranges = new Map<string, DateRange>();
  for (const [id, { at, attributes }] of tags) {
    const before = ranges.get(id)?.attributes ?? new Map<string, string>();
    for (const [name, value] of attributes) {
      const told = before.get(name) ?? value;
      if (told !== value) report(differs, at, `${id}: ${name}=${told}, then ${value}`);
    }
    ranges.set(id, { at, attributes: new Map([...attributes, ...before]) });
  }
  return ranges;
}

/** Date ranges of a playlist, by ID. */
export function rangesOf(playlist: MediaPlaylist, report: Report = () => {}): Map<string, DateRange> {
  const tags = linesOf(playlist, 'EXT-X-DATERANGE').map((line) => [line.attributes.get('ID') ?? '', line] as const);
  return joinRanges(tags, 'range-differs', report);
}

/** When a range begins and ends, in milliseconds since the epoch; without a known end it lasts for a moment. */
export function spanOf({ attributes }: DateRange): { from: number; to: number } {
  const from = dateOf(attributes.get('START-DATE') ?? '');
  const end = attributes.get('END-DATE');
  return { from, to: end === undefined ? from + 1000 * Number(attributes.get('DURATION') ?? 0) : dateOf(end) };
}

/** Checks the date ranges of one playlist (4.4.5.1). */
export function checkRanges(playlist: MediaPlaylist, report: Report): void {
  const begun = new Set<string>();
  for (const { at, attributes } of linesOf(playlist, 'EXT-X-DATERANGE')) {
    const id = attributes.get('ID') ?? '';
    if (!begun.has(id) && !attributes.has('START-DATE')) report('range-start-missing', at, id);
    begun.add(id);
  }
  const ranges = rangesOf(playlist, report);
  const [first] = ranges.values();
  const hasDates = linesOf(playlist, 'EXT-X-PROGRAM-DATE-TIME').length > 0;
  if (first !== undefined && !hasDates) report('range-without-dates', first.at, 'no EXT-X-PROGRAM-DATE-TIME');
  for (const [id, range] of ranges) checkRange(id, range, report);
}

function checkRange(id: string, range: DateRange, report: Report): void {
  const { at, attributes } = range;
  const has = (name: string) => attributes.has(name);
  const { from, to } = spanOf(range);
  const length = Number(attributes.get('DURATION') ?? (to - from) / 1000) * 1000;
  if (to < from || Math.abs(from + length - to) > ROUNDED_MS)
    report('range-end', at, `${id}: DURATION=${length / 1000}, ${(to - from) / 1000} seconds to END-DATE`);
  if (has('END-ON-NEXT') && (!has('CLASS') || has('DURATION') || has('END-DATE')))
    report('range-end-on-next', at, `${id}: ${[...attributes.keys()].join()}`);
  const cue = attributes.get('CUE')?.split(',') ?? [];
  if (cue.includes('PRE') && cue.includes('POST')) report('range-cue', at, `${id}: ${cue.join()}`);
  if (has('SCTE35-OUT') && has('SCTE35-IN') && !has('DURATION') && !has('END-DATE'))
    report('range-splice-length', at, id);
}
