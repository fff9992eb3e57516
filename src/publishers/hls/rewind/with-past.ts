import { targetOf } from '../../../packaging/listed-duration.ts';
import { GAP_VERSION, SKIP_VERSION } from '../../../packaging/listed-version.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import { changedLines } from '../../../packaging/drm/key-tags.ts';
import { TextPiece } from '../answer/text.ts';
import type { PastList } from './past-list.ts';

/** Tags before the first segment: those that come first, and those that count segments and discontinuities before it. */
const HEAD =
  /^(#EXTM3U\n(?:#EXT-X-(?:VERSION|TARGETDURATION|SERVER-CONTROL|PART-INF):.*\n)*)#EXT-X-MEDIA-SEQUENCE:(\d+)\n(?:#EXT-X-DISCONTINUITY-SEQUENCE:(\d+)\n)?/;
const DISCONTINUITY = '#EXT-X-DISCONTINUITY\n';
const VERSION = /^#EXT-X-VERSION:\d+/m;
const TARGET = /^#EXT-X-TARGETDURATION:(\d+)$/m;
/** A gap at the head of the segments. */
const GAP_AT_HEAD =
  /^(?:#EXT-X-(?:DISCONTINUITY|KEY:.*|MAP:.*|PROGRAM-DATE-TIME:.*|DATERANGE:.*)\n)*#EXT-X-GAP\n#EXTINF:.*\n.+\n/;
/** An initialization, with the keys that its segments need. */
const KEYED_MAP = /(?:^#EXT-X-KEY:.*\n)*^#EXT-X-MAP:.*\n/m;
const KEY = /^#EXT-X-KEY:.*\n/gm;
const MAP = /^((?:#EXT-X-(?:DISCONTINUITY|DATERANGE:.*|KEY:.*)\n)*)#EXT-X-MAP:URI="([^"]*)"\n/;
/** Target durations from the end of the playlist beyond which a delta update may skip segments (RFC 8216bis 4.4.3.8). */
const SKIP_UNTIL_TARGETS = 6;
const EVERYTHING: Pick<PastList, 'lists'> = { lists: () => true };

/** Media sequence number of the first segment of a media playlist; undefined for a text that is none. */
export function firstNumber(list: string): number | undefined {
  const number = HEAD.exec(list)?.[2];
  return number === undefined ? undefined : Number(number);
}

/** Media sequence number of the first segment of a media playlist after gaps at its head; undefined for a text that is none. */
export function firstAfterGaps(list: string): number | undefined {
  const [head, , number] = HEAD.exec(list) ?? [];
  return head === undefined ? undefined : afterGaps(list.slice(head.length), Number(number), EVERYTHING).from;
}

export interface PastOptions {
  /** Delta updates leave out older segments. */
  readonly form: ChunklistForm;
  /** No segment leaves the playlist (`EXT-X-PLAYLIST-TYPE:EVENT`). */
  readonly event: boolean;
  /** Seconds of the longest segment in any playlist of the stream: their target durations are the same. */
  readonly longest: number;
}

/**
 * Puts the segments of the past in front of a media playlist. Delta updates are offered for a playlist that players may reload with
 * delivery directives (RFC 8216bis 6.2.5.1), even while there is no past yet: what a playlist offers does not change.
 * @param list the present playlist: with all its segments, also for a delta update
 * @param past of the same media playlist
 * @returns undefined where segments between the past and the present are missing, and for a text that is no playlist
 */
export function withPast(list: string, past: PastList | undefined, options: PastOptions): TextPiece[] | undefined {
  const { form, event, longest } = options;
  const [head, given = '', number = '0', sequenceThere = '0'] = HEAD.exec(list) ?? [];
  const msn = Number(number);
  const reaches = past !== undefined && !past.empty && past.first < msn;
  if (head === undefined || (reaches && past.next < msn)) return undefined;
  const target = Math.max(Number(TARGET.exec(given)?.[1] ?? 0), targetOf(longest));
  const tags = given.replace(TARGET, `#EXT-X-TARGETDURATION:${target}`);
  const isSkippable = tags.includes('CAN-BLOCK-RELOAD=YES');
  // a past may come to have gaps, for which the version must not change (RFC 8216bis 6.2.1)
  const versioned = tags.replace(VERSION, `#EXT-X-VERSION:${isSkippable ? SKIP_VERSION : GAP_VERSION}`);
  const top =
    (isSkippable ? offeringSkips(versioned, target) : versioned) + (event ? '#EXT-X-PLAYLIST-TYPE:EVENT\n' : '');
  const segments = list.slice(head.length);
  if (!reaches) return [top, list.slice(given.length)].map(toPiece);
  const { first } = past;
  const { rest, from } = afterGaps(segments, msn, past);
  // the first segment of another packager follows a discontinuity that its playlist only counts
  const follows = from === msn && Number(sequenceThere) > past.discontinuitiesTo(msn - 1);
  const skipped = form === 'delta' && isSkippable ? skippable(past, from, rest, target) : 0;
  const shown = first + skipped;
  const sequence = past.discontinuitySequence(first);
  let text = `${top}#EXT-X-MEDIA-SEQUENCE:${first}\n`;
  if (sequence > 0) text += `#EXT-X-DISCONTINUITY-SEQUENCE:${sequence}\n`;
  // delta updates have all date ranges: CAN-SKIP-DATERANGES is not offered
  if (skipped > 0) text += `#EXT-X-SKIP:SKIPPED-SEGMENTS=${skipped}\n${past.dateRanges(shown)}`;
  const present = from > shown ? afterInit(rest, past.init(from - 1), past.keys(from - 1)) : rest;
  return [text, ...past.pieces(shown, from), (follows ? DISCONTINUITY : '') + present].map(toPiece);
}

/** Finds where the present playlist goes on after the past; undefined where there is nothing in front of it. */
export function afterPast(list: string, past: PastList): Present | undefined {
  const [head, , number = '0'] = HEAD.exec(list) ?? [];
  const msn = Number(number);
  if (head === undefined || past.empty || past.first >= msn || past.next < msn) return undefined;
  return afterGaps(list.slice(head.length), msn, past);
}

/** Segments of a playlist that do not come from the past. */
interface Present {
  /** Their lines. */
  readonly rest: string;
  /** Media sequence number of the first one. */
  readonly from: number;
}

/**
 * Leaves out gaps at the head of a playlist whose segments the past lists: if that has gaps too, they are at the times of the other
 * playlists of the stream. The initialization that they name stays in force.
 */
function afterGaps(segments: string, msn: number, past: Pick<PastList, 'lists'>): Present {
  let [rest, from, map] = [segments, msn, ''];
  for (let gap = GAP_AT_HEAD.exec(rest); gap !== null && past.lists(from); gap = GAP_AT_HEAD.exec(rest)) {
    map = KEYED_MAP.exec(gap[0])?.[0] ?? map;
    rest = rest.slice(gap[0].length);
    from++;
  }
  return { rest: MAP.test(rest) ? rest : map + rest, from };
}

/**
 * Removes the first EXT-X-MAP, and its keys, if it names an initialization that is in force already. Says where segments in clear
 * follow encrypted ones.
 * @param keys lines of those that are in force
 */
function afterInit(segments: string, init: string | undefined, keys: string): string {
  if (init === undefined) return segments;
  return segments.replace(MAP, (all, before: string, uri: string) => {
    if (uri.replace(/\?.*$/, '') === init) return before.replaceAll(KEY, '');
    return before.search(KEY) < 0 ? before + changedLines('', keys) + all.slice(before.length) : all;
  });
}

function offeringSkips(tags: string, target: number): string {
  const until = `,CAN-SKIP-UNTIL=${SKIP_UNTIL_TARGETS * target}`;
  return tags.replace(/,CAN-SKIP-UNTIL=[\d.]+/, '').replace(/^(#EXT-X-SERVER-CONTROL:.*)$/m, `$1${until}`);
}

/**
 * Number of segments of the past that end before the skip boundary. Gaps do not count towards it: after a restart many are listed at
 * once, and a player whose playlist is of a moment ago has none of them.
 */
function skippable(past: PastList, until: number, rest: string, target: number): number {
  let behind = 0;
  for (const [, gap, seconds] of rest.matchAll(/^(#EXT-X-GAP\n)?#EXTINF:([\d.]+)/gm))
    if (gap === undefined) behind += Number(seconds);
  let shown = until;
  while (shown > past.first && behind < SKIP_UNTIL_TARGETS * target)
    if (past.has(--shown)) behind += past.duration(shown);
  return shown - past.first;
}

function toPiece(text: string | TextPiece): TextPiece {
  return typeof text === 'string' ? new TextPiece(Buffer.from(text)) : text;
}
