import { joinRanges, rangesOf, spanOf, type DateRange } from './date-ranges.ts';
import {
  allSegments,
  discontinuityNumbers,
  lengthOf,
  linesOf,
  type MediaPlaylist,
  type Part,
  type Segment,
} from './media-playlist.ts';
import { readAndCheck } from './media-rules.ts';
import { collect, type Finding, type Report } from './rules.ts';

/** Seconds that sums of rounded durations may be off. */
const HAIR_SECONDS = 0.001;

/** Tags of the whole playlist, which stay as they are (6.2.1). */
const HEADER = [
  'EXT-X-VERSION',
  'EXT-X-PLAYLIST-TYPE',
  'EXT-X-I-FRAMES-ONLY',
  'EXT-X-INDEPENDENT-SEGMENTS',
  'EXT-X-START',
  'EXT-X-PART-INF',
  'EXT-X-SERVER-CONTROL',
] as const;

/** A checked sequence of reloads. */
export interface Reloads {
  readonly findings: readonly Finding[];
  /** What a player has after each reload: delta updates are joined with what was there. */
  readonly playlists: readonly MediaPlaylist[];
}

/**
 * Checks answers of one media playlist in the order in which a player got them, delta updates among them.
 * @throws Error when a delta update skips what no answer before it had
 */
export function checkReloads(texts: readonly string[]): Reloads {
  const playlists: MediaPlaylist[] = [];
  const findings = collect((report) => {
    const ranges: [string, DateRange][] = [];
    for (const text of texts) {
      const before = playlists.at(-1);
      if (before?.text === text) continue;
      const playlist = joinDelta(before, readAndCheck(text, report));
      playlists.push(playlist);
      // within one playlist they have been compared
      ranges.push(...rangesOf(playlist));
      if (before !== undefined) checkReload(before, playlist, report);
    }
    joinRanges(ranges, 'range-changed', report);
  });
  return { findings, playlists };
}

/** Joins a delta update with the playlist before it (6.3.7); another playlist is given back. @throws Error see above */
export function joinDelta(before: MediaPlaylist | undefined, playlist: MediaPlaylist): MediaPlaylist {
  const { skipped, mediaSequence, segments, growing } = playlist;
  if (skipped === 0) return playlist;
  const kept = (before?.segments ?? []).filter(({ msn }) => msn >= mediaSequence && msn < mediaSequence + skipped);
  if (kept.length !== skipped) throw new Error(`${skipped} segments from ${mediaSequence} are not known`);
  const last = kept.at(-1);
  const follow = (segment: Segment): Segment => ({
    ...segment,
    map: segment.map ?? last?.map,
    keys: segment.keys ?? last?.keys,
  });
  // parts of skipped segments are gone with them
  const old = kept.map((segment) => ({ ...segment, parts: [] }));
  return {
    ...playlist,
    skipped: 0,
    segments: [...old, ...segments.map(follow)],
    growing: growing && follow(growing),
  };
}

/** Checks that a delta update says the same as the full playlist of the same moment. @param before full one before it */
export function checkDelta(before: string, delta: string, full: string): Finding[] {
  return collect((report) => {
    const read = (text: string) => readAndCheck(text, report);
    const [joined, whole] = [joinDelta(read(before), read(delta)), read(full)].map(contentOf);
    for (const [name, content] of Object.entries(whole ?? {}))
      if (joined?.[name] !== content) report('delta-differs', 0, `${name}: ${joined?.[name]}, not ${content}`);
  });
}

/** What a playlist says, whatever its lines. */
function contentOf(playlist: MediaPlaylist): Record<string, string> {
  const content: Record<string, string> = {};
  for (const segment of allSegments(playlist))
    content[`segment ${segment.msn}`] = JSON.stringify([contentOfSegment(segment), segment.parts.map(contentOfPart)]);
  for (const [id, { attributes }] of rangesOf(playlist))
    content[`date range ${id}`] = JSON.stringify([...attributes].toSorted());
  const others = playlist.lines.filter(({ name = 'EXTINF' }) => !OF_CONTENT.has(name) && name.startsWith('EXT-X-'));
  content['other tags'] = others.map(({ name, value }) => `${name}:${value}`).join();
  return content;
}

const OF_CONTENT: ReadonlySet<string> = new Set([
  'EXTINF',
  'EXT-X-BYTERANGE',
  'EXT-X-DATERANGE',
  'EXT-X-DISCONTINUITY',
  'EXT-X-GAP',
  'EXT-X-KEY',
  'EXT-X-MAP',
  'EXT-X-PART',
  'EXT-X-PROGRAM-DATE-TIME',
  'EXT-X-SKIP',
  // of a segment too, though of no standard
  'EXT-X-CUE-OUT',
  'EXT-X-CUE-IN',
]);

function contentOfSegment({ uri, duration, discontinuity, gap, byteRange, map, keys, date }: Segment): unknown[] {
  return [uri, duration, discontinuity, gap, byteRange, map, [...(keys ?? [])], date];
}

function contentOfPart({ uri, duration, independent, gap, byteRange }: Part): unknown[] {
  return [uri, duration, independent, gap, byteRange];
}

function checkReload(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  checkHeaders(before, now, report);
  checkSegments(before, now, report);
  checkRemoval(before, now, report);
  checkNumbers(before, now, report);
  checkParts(before, now, report);
  checkRanges(before, now, report);
}

function checkHeaders(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const grows = now.targetDuration !== before.targetDuration;
  const ends = now.ended && !before.ended;
  // what goes by the target duration changes with it
  const changed = grows ? 'target-duration-changed' : ends ? 'header-changed-at-end' : 'header-changed';
  for (const name of ['EXT-X-TARGETDURATION', ...HEADER]) {
    const [was, is] = [before, now].map((playlist) => linesOf(playlist, name)[0]?.value);
    if (was !== is) report(changed, 0, `${name}:${was}, then ${is}`);
  }
  if (before.type === 'VOD' && now.text !== before.text) report('vod-changed', 0, 'another text');
}

function checkSegments(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const { mediaSequence } = now;
  if (mediaSequence < before.mediaSequence)
    report('media-sequence-falls', 0, `${before.mediaSequence}, then ${mediaSequence}`);
  const there = new Map(now.segments.map((segment) => [segment.msn, segment]));
  for (const segment of before.segments) {
    if (segment.msn < mediaSequence) continue;
    const same = there.get(segment.msn);
    const was = JSON.stringify(contentOfSegment(segment));
    const is = JSON.stringify(same && contentOfSegment(same));
    if (same === undefined) report('segment-lost', 0, `${segment.msn}, ${segment.uri}`);
    else if (was !== is) report('segment-changed', same.at, `${segment.msn}: ${was}, then ${is}`);
  }
  const last = before.segments.at(-1)?.msn ?? -1;
  const added = now.segments.filter(({ msn }) => msn > last);
  if (before.ended && added[0] !== undefined) report('added-after-end', added[0].at, added[0].uri ?? '');
  if (before.ended && !now.ended) report('end-removed', 0, 'no EXT-X-ENDLIST');
}

function checkRemoval(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const removed = now.mediaSequence - before.mediaSequence;
  if (removed <= 0) return;
  if (before.type !== undefined || now.type !== undefined)
    report('removed-from-typed', 0, `${removed} segments, type ${before.type ?? now.type}`);
  const length = lengthOf(now);
  const grown = now.targetDuration > before.targetDuration;
  if (!now.ended && length < 3 * now.targetDuration - HAIR_SECONDS)
    report(
      grown ? 'target-duration-changed' : 'removed-too-early',
      0,
      `${removed} segments, ${length} seconds left of ${now.targetDuration} each`,
    );
}

function checkNumbers(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  if (now.discontinuitySequence < before.discontinuitySequence)
    report('discontinuity-sequence-falls', 0, `${before.discontinuitySequence}, then ${now.discontinuitySequence}`);
  const numbers = discontinuityNumbers(before);
  for (const [msn, number] of discontinuityNumbers(now)) {
    const was = numbers.get(msn) ?? number;
    if (was !== number) report('discontinuity-number-changed', 0, `segment ${msn}: ${was}, then ${number}`);
  }
}

function checkParts(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const there = new Map(allSegments(now).map((segment) => [segment.msn, segment]));
  const first = allSegments(now).find(({ parts }) => parts.length > 0)?.msn ?? Infinity;
  for (const { msn, parts } of allSegments(before)) {
    const same = there.get(msn);
    if (parts.length === 0 || same === undefined || msn < first) continue;
    // those of the first segment that has some may have left in part
    const gone =
      msn === first
        ? Math.max(
            0,
            parts.findIndex(({ uri }) => uri === same.parts[0]?.uri),
          )
        : 0;
    for (const [index, part] of parts.slice(gone).entries()) {
      const is = same.parts[index];
      const texts = [part, is].map((one) => one && JSON.stringify(contentOfPart(one)));
      if (is === undefined) report('part-lost', same.at, `segment ${msn}, ${part.uri}`);
      else if (texts[0] !== texts[1]) report('part-changed', is.at, `segment ${msn}: ${texts.join(', then ')}`);
    }
  }
  checkHint(before, now, report);
}

function checkHint(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const [hint] = linesOf(before, 'EXT-X-PRELOAD-HINT').filter(({ attributes }) => attributes.get('TYPE') === 'PART');
  const known = new Set(allSegments(before).flatMap(({ parts }) => parts.map(({ uri }) => uri)));
  const last = allSegments(before).findLast(({ parts }) => parts.length > 0)?.msn ?? Infinity;
  const next = allSegments(now)
    .filter(({ msn }) => msn >= last)
    .flatMap(({ parts }) => parts)
    .find(({ uri }) => !known.has(uri));
  if (hint !== undefined && next !== undefined && next.uri !== hint.attributes.get('URI'))
    report('hint-missed', next.at, `${hint.attributes.get('URI')}, then ${next.uri}`);
}

function checkRanges(before: MediaPlaylist, now: MediaPlaylist, report: Report): void {
  const kept = rangesOf(now);
  const segments = allSegments(now);
  for (const [id, range] of rangesOf(before)) {
    if (kept.has(id)) continue;
    const { from, to } = spanOf(range);
    const inside = segments.find(({ date, duration }) => {
      const end = (date ?? NaN) + duration * 1000;
      return from < end && (to > (date ?? NaN) || from >= (date ?? NaN));
    });
    if (inside !== undefined) report('range-lost', inside.at, `${id}, segment ${inside.msn}`);
  }
}
