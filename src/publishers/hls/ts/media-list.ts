import { tsExtinf } from '../../../packaging/listed-duration.ts';
import { listedVersion } from '../../../packaging/listed-version.ts';
import type { Breaks } from '../../../packaging/breaks.ts';
import type { TsFacts } from '../../../packaging/ts-segment.ts';

type ListedSegment = TsFacts & { readonly gap: boolean };

export interface MediaListOptions {
  /** Seconds. */
  readonly targetDuration: number;
  /** Discontinuities that have left the playlist. */
  readonly discontinuitySequence: number;
  readonly uri: (segment: ListedSegment) => string;
  /** No more segments follow. */
  readonly ended: boolean;
  readonly breaks: Breaks;
}

/** Builds a media playlist of version 3 (RFC 8216 4.3), and of a higher one while it lists gaps. @param segments successive ones, not empty */
export function buildMediaList(
  segments: readonly ListedSegment[],
  { targetDuration, discontinuitySequence, uri, breaks, ended }: MediaListOptions,
): string {
  const version = listedVersion(
    3,
    segments.some(({ gap }) => gap),
  );
  let text = `#EXTM3U\n#EXT-X-VERSION:${version}\n#EXT-X-TARGETDURATION:${targetDuration}\n#EXT-X-MEDIA-SEQUENCE:${segments[0]?.msn ?? 0}\n`;
  if (discontinuitySequence > 0) text += `#EXT-X-DISCONTINUITY-SEQUENCE:${discontinuitySequence}\n`;
  const [first] = segments;
  const marks = breaks.empty ? undefined : breaks;
  if (marks !== undefined && first !== undefined) text += marks.before(first);
  for (const segment of segments) {
    if (segment.discontinuity) text += '#EXT-X-DISCONTINUITY\n';
    if (marks !== undefined) text += marks.at(segment.msn);
    text += `#EXT-X-PROGRAM-DATE-TIME:${new Date(segment.wallClock).toISOString()}\n`;
    if (segment.gap) text += '#EXT-X-GAP\n';
    text += `${tsExtinf(segment.duration)}\n${uri(segment)}\n`;
  }
  return ended ? `${text}#EXT-X-ENDLIST\n` : text;
}
