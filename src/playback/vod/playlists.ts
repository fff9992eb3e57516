import { extinf, targetOf } from '../../packaging/listed-duration.ts';

/** A segment of a media playlist. */
export interface ListedSegment {
  readonly uri: string;
  /** Seconds. */
  readonly duration: number;
}

/** Segments of one recording. */
export interface ListedFile {
  /** URI of the initialization segment. */
  readonly init: string;
  /** Time of the first segment, in milliseconds since the epoch. */
  readonly startTime: number;
  readonly segments: readonly ListedSegment[];
}

/** The only variant of a master playlist. */
export interface ListedVariant {
  readonly uri: string;
  /** Values of CODECS. */
  readonly codecs: ReadonlySet<string>;
  /** Bits per second. */
  readonly peak: number;
  readonly average: number;
  /** 0 without video. */
  readonly width: number;
  readonly height: number;
}

/**
 * Writes the media playlist of a clip (RFC 8216bis): all of it is there, and each recording follows a discontinuity.
 * @param files at least one
 * @param start seconds from the beginning to where players start
 */
export function mediaPlaylist(files: readonly ListedFile[], start: number): string {
  const longest = files.reduce(
    (most, { segments }) => segments.reduce((longer, { duration }) => Math.max(longer, duration), most),
    1,
  );
  const lines = ['#EXTM3U', '#EXT-X-VERSION:6', `#EXT-X-TARGETDURATION:${targetOf(longest)}`];
  lines.push('#EXT-X-MEDIA-SEQUENCE:0', '#EXT-X-PLAYLIST-TYPE:VOD', ...startTag(start));
  for (const [index, { init, startTime, segments }] of files.entries()) {
    if (index > 0) lines.push('#EXT-X-DISCONTINUITY');
    lines.push(`#EXT-X-MAP:URI="${init}"`, `#EXT-X-PROGRAM-DATE-TIME:${new Date(startTime).toISOString()}`);
    for (const { uri, duration } of segments) lines.push(extinf(duration), uri);
  }
  return `${lines.join('\n')}\n#EXT-X-ENDLIST\n`;
}

/** Writes the master playlist of a clip. @param start as of `mediaPlaylist` */
export function masterPlaylist({ uri, codecs, peak, average, width, height }: ListedVariant, start: number): string {
  const size = width > 0 && height > 0 ? `,RESOLUTION=${width}x${height}` : '';
  const rates = `BANDWIDTH=${Math.ceil(peak)},AVERAGE-BANDWIDTH=${Math.ceil(average)}`;
  const lines = ['#EXTM3U', '#EXT-X-INDEPENDENT-SEGMENTS', ...startTag(start)];
  lines.push(`#EXT-X-STREAM-INF:${rates}${size},CODECS="${[...codecs].join(',')}"`, uri);
  return `${lines.join('\n')}\n`;
}

function startTag(start: number): string[] {
  return start > 0 ? [`#EXT-X-START:TIME-OFFSET=${start.toFixed(3)},PRECISE=YES`] : [];
}
