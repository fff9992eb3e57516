import { checkRanges } from './date-ranges.ts';
import {
  allSegments,
  attributeOf,
  lengthOf,
  linesOf,
  numberOf,
  readMediaPlaylist,
  type MediaPlaylist,
  type Part,
  type Segment,
} from './media-playlist.ts';
import { collect, type Finding, type Report } from './rules.ts';
import { checkTags } from './tags.ts';
import { checkVersion } from './version.ts';

/** Seconds that sums of rounded durations may be off. */
const HAIR_SECONDS = 0.001;
/** Part of PART-TARGET that a part has at least (4.4.4.9). */
const LEAST_PART = 0.85;
/** Milliseconds by which dates may differ from the durations before them. */
const DRIFT_MS = 100;
/** Milliseconds by which dates may overlap, at most (6.2.1). */
const OVERLAP_MS = 1000;

/** Checks one media playlist, or one delta update. */
export function checkMediaPlaylist(text: string): Finding[] {
  return collect((report) => void readAndCheck(text, report));
}

/** The same, and gives the playlist. */
export function readAndCheck(text: string, report: Report): MediaPlaylist {
  const playlist = readMediaPlaylist(text, report);
  checkTags(playlist.lines, 'media', report);
  checkVersion(playlist.lines, report);
  checkHeader(playlist, report);
  checkLowLatency(playlist, report);
  checkSkip(playlist, report);
  checkSegments(playlist, report);
  checkKeys(playlist, report);
  checkDates(playlist, report);
  checkParts(playlist, report);
  checkRanges(playlist, report);
  return playlist;
}

function checkHeader(playlist: MediaPlaylist, report: Report): void {
  const { targetDuration, ended } = playlist;
  if (targetDuration === 0) report('target-duration-missing', 0, 'none');
  const [start] = linesOf(playlist, 'EXT-X-START');
  if (start === undefined) return;
  const offset = Number(start.attributes.get('TIME-OFFSET'));
  const length = lengthOf(playlist);
  const fromEnd = offset < 0 ? -offset : length - offset;
  const isOutside = playlist.skipped === 0 && Math.abs(offset) > length;
  if (isOutside || (!ended && fromEnd < 3 * targetDuration))
    report('start-outside', start.at, `${offset} of ${length} seconds`);
}

function checkLowLatency(playlist: MediaPlaylist, report: Report): void {
  const { targetDuration, ended } = playlist;
  const [inf] = linesOf(playlist, 'EXT-X-PART-INF');
  const control = linesOf(playlist, 'EXT-X-SERVER-CONTROL')[0]?.at ?? 0;
  const of = (name: string) => numberOf(playlist, 'EXT-X-SERVER-CONTROL', name);
  const [holdBack, partHoldBack, skipUntil] = [of('HOLD-BACK'), of('PART-HOLD-BACK'), of('CAN-SKIP-UNTIL')];
  const target = numberOf(playlist, 'EXT-X-PART-INF', 'PART-TARGET') ?? 0;
  const [part] = linesOf(playlist, 'EXT-X-PART');
  if (part !== undefined && inf === undefined) report('part-inf-missing', part.at, 'EXT-X-PART');
  if (inf !== undefined && partHoldBack === undefined) report('part-hold-back-missing', inf.at, 'EXT-X-PART-INF');
  if (partHoldBack !== undefined) {
    const found = `${partHoldBack} with parts of ${target}`;
    if (isLess(partHoldBack, 2 * target)) report('part-hold-back-low', control, found);
    else if (isLess(partHoldBack, 3 * target)) report('part-hold-back-short', control, found);
  }
  if (holdBack !== undefined && holdBack < 3 * targetDuration) report('hold-back-low', control, `${holdBack}`);
  if (skipUntil !== undefined && skipUntil < 6 * targetDuration) report('skip-boundary-low', control, `${skipUntil}`);
  const skipsRanges = attributeOf(playlist, 'EXT-X-SERVER-CONTROL', 'CAN-SKIP-DATERANGES') !== undefined;
  if (skipsRanges && skipUntil === undefined) report('skip-date-ranges-alone', control, 'no CAN-SKIP-UNTIL');
  const types = new Set<string>();
  for (const { at, attributes } of linesOf(playlist, 'EXT-X-PRELOAD-HINT')) {
    const type = attributes.get('TYPE') ?? '';
    if (ended) report('hint-after-end', at, type);
    if (types.has(type)) report('hint-twice', at, type);
    types.add(type);
  }
  for (const { at, attributes } of linesOf(playlist, 'EXT-X-RENDITION-REPORT')) {
    const uri = attributes.get('URI') ?? '';
    if (/^[a-z][a-z\d+.-]*:/i.test(uri)) report('report-absolute', at, uri);
  }
}

/** Whether a decimal number is less than a product of one, which may be off by its last bit. */
function isLess(value: number, product: number): boolean {
  return value < product - 1e-9;
}

function checkSkip(playlist: MediaPlaylist, report: Report): void {
  const [skip] = linesOf(playlist, 'EXT-X-SKIP');
  if (skip === undefined) return;
  const until = numberOf(playlist, 'EXT-X-SERVER-CONTROL', 'CAN-SKIP-UNTIL');
  if (until === undefined || playlist.ended) return report('skip-not-offered', skip.at, `ended: ${playlist.ended}`);
  const left = lengthOf(playlist) + (playlist.growing?.duration ?? 0);
  if (left < until - HAIR_SECONDS) report('skipped-too-much', skip.at, `${left} seconds left, ${until} at least`);
}

function checkSegments(playlist: MediaPlaylist, report: Report): void {
  const { segments, targetDuration } = playlist;
  const iFramesOnly = linesOf(playlist, 'EXT-X-I-FRAMES-ONLY').length > 0;
  let before: Segment | undefined;
  for (const segment of allSegments(playlist)) {
    const { at, uri, duration, byteRange, map } = segment;
    if (uri !== undefined && Math.round(duration) > targetDuration) report('segment-too-long', at, `${duration}`);
    const isFirst = before === undefined && playlist.skipped > 0;
    const resource = uri ?? segment.parts[0]?.uri ?? '';
    if (/\.(m4s|mp4|m4v|m4a|cmfv|cmfa)(\?|$)/.test(resource) && map === undefined && !isFirst)
      report('map-missing', at, resource);
    if (byteRange?.includes('@') === false && (before?.uri !== uri || before?.byteRange === undefined))
      report('byte-range-alone', at, byteRange);
    if (before?.map !== undefined && map !== before.map && !segment.discontinuity)
      report('map-without-discontinuity', at, `${map}`);
    before = segment;
  }
  const [first] = segments;
  if (!iFramesOnly || first === undefined) return;
  if (first.map === undefined && playlist.skipped === 0) report('i-frames-map-missing', first.at, first.uri ?? '');
  const [part] = linesOf(playlist, 'EXT-X-PART');
  if (part !== undefined) report('i-frames-parts', part.at, 'EXT-X-PART');
}

function checkKeys(playlist: MediaPlaylist, report: Report): void {
  let key: ReadonlyMap<string, string> = new Map();
  for (const { at, name, attributes } of playlist.lines) {
    if (name === 'EXT-X-KEY') {
      const method = attributes.get('METHOD') ?? '';
      const forbidsIv = ['AES-256-GCM', 'SAMPLE-AES-CTR'].includes(method) && attributes.has('IV');
      if (forbidsIv || (method === 'NONE' ? attributes.size > 1 : !attributes.has('URI')))
        report('key-attributes', at, [...attributes.keys()].join());
      key = attributes;
    }
    if (name === 'EXT-X-MAP' && key.get('METHOD') === 'AES-128' && !key.has('IV'))
      report('map-iv-missing', at, attributes.get('URI') ?? '');
  }
}

function checkDates(playlist: MediaPlaylist, report: Report): void {
  for (const { at, name, value, attributes } of playlist.lines) {
    const isDate = name === 'EXT-X-PROGRAM-DATE-TIME';
    const dates = isDate ? [value] : ['START-DATE', 'END-DATE'].flatMap((one) => attributes.get(one) ?? []);
    for (const date of dates) if (!/\.\d{3,}(Z|[+-]\d\d:?\d\d)$/.test(date)) report('date-form', at, date);
  }
  const segments = allSegments(playlist);
  const hasDates = segments.some(({ date }) => date !== undefined);
  let expected: number | undefined;
  let before: Segment | undefined;
  for (const segment of segments) {
    const { at, date, duration, discontinuity } = segment;
    if (hasDates && discontinuity && date === undefined) report('date-missing', at, segment.uri ?? '');
    if (date !== undefined && expected !== undefined) {
      const late = date - expected;
      const isInside = before?.date === undefined || before.duration === 0 || date > before.date;
      if (late <= -OVERLAP_MS || !isInside) report('dates-overlap', at, `${-late} ms, segment ${segment.msn}`);
      else if (!discontinuity && Math.abs(late) > DRIFT_MS)
        report('dates-drift', at, `${late} ms, segment ${segment.msn}`);
    }
    const begin = date ?? (discontinuity ? undefined : expected);
    expected = begin === undefined ? undefined : begin + duration * 1000;
    before = segment;
  }
}

function checkParts(playlist: MediaPlaylist, report: Report): void {
  const target = numberOf(playlist, 'EXT-X-PART-INF', 'PART-TARGET') ?? Infinity;
  let behind = 0;
  for (const { duration, parts } of allSegments(playlist).toReversed()) {
    let fromEnd = behind;
    for (const [index, part] of [...parts.entries()].toReversed()) {
      checkPart(part, parts[index + 1], target, report);
      if (fromEnd > 3 * playlist.targetDuration + HAIR_SECONDS)
        report('part-old', part.at, `${fromEnd} seconds from the end`);
      fromEnd += part.duration;
    }
    behind += duration;
  }
}

function checkPart({ at, duration, independent, gap }: Part, next: Part | undefined, target: number, report: Report) {
  if (duration > target) report('part-too-long', at, `${duration} with parts of ${target}`);
  const isExcepted = independent || gap || next === undefined || next.gap;
  if (!isExcepted && target < Infinity && isLess(duration, LEAST_PART * target))
    report('part-too-short', at, `${duration} with parts of ${target}`);
}
