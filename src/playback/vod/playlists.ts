import { extinf, targetOf } from '../../packaging/listed-duration.ts';
import { subtitleMembers, subtitlesOf } from '../../publishers/hls/master/subtitles.ts';
import type { ShownHow } from '../clip/recording.ts';

export const MEDIA_LIST = 'media.m3u8';

/** Name of the media playlist of subtitles. @param number of their label */
function subtitleList(number: number): string {
  return `subtitles_${number}.m3u8`;
}

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
  return listed(files, start);
}

function listed(files: readonly (Omit<ListedFile, 'init'> & Partial<ListedFile>)[], start: number): string {
  const longest = files.reduce(
    (most, { segments }) => segments.reduce((longer, { duration }) => Math.max(longer, duration), most),
    1,
  );
  const version = files.some(({ init }) => init !== undefined) ? 6 : 3;
  const lines = ['#EXTM3U', `#EXT-X-VERSION:${version}`, `#EXT-X-TARGETDURATION:${targetOf(longest)}`];
  lines.push('#EXT-X-MEDIA-SEQUENCE:0', '#EXT-X-PLAYLIST-TYPE:VOD', ...startTag(start));
  for (const [index, { init, startTime, segments }] of files.entries()) {
    if (index > 0) lines.push('#EXT-X-DISCONTINUITY');
    if (init !== undefined) lines.push(`#EXT-X-MAP:URI="${init}"`);
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${new Date(startTime).toISOString()}`);
    for (const { uri, duration } of segments) lines.push(extinf(duration), uri);
  }
  return `${lines.join('\n')}\n#EXT-X-ENDLIST\n`;
}

/**
 * Writes the media playlist of subtitles of a clip, with a segment for each of the media.
 * @param files, start as of `mediaPlaylist`
 * @param number of the label
 */
export function subtitlePlaylist(files: readonly ListedFile[], start: number, number: number): string {
  const named = (uri: string): string => uri.replace(/\.m4s$/, `_${number}.vtt`);
  const own = files.map(({ startTime, segments }) => ({
    startTime,
    segments: segments.map(({ uri, duration }) => ({ uri: named(uri), duration })),
  }));
  return listed(own, start);
}

/**
 * Writes the master playlist of a clip.
 * @param base of the URIs of its media playlists
 * @param start as of `mediaPlaylist`
 */
export function masterPlaylist(
  base: string,
  { codecs, peak, average, width, height }: ListedVariant,
  labels: readonly ShownHow[],
  start: number,
): string {
  const size = width > 0 && height > 0 ? `,RESOLUTION=${width}x${height}` : '';
  const rates = `BANDWIDTH=${Math.ceil(peak)},AVERAGE-BANDWIDTH=${Math.ceil(average)}`;
  const lines = ['#EXTM3U', '#EXT-X-INDEPENDENT-SEGMENTS', ...startTag(start)];
  const members = labels.map(({ label, ...shown }, number) => ({
    track: { publicName: label, autoSelect: shown.isDefault, ...shown },
    uri: `${base}${subtitleList(number)}`,
  }));
  const subtitles = subtitleMembers(members).trimEnd();
  if (subtitles !== '') lines.push(subtitles);
  const group = subtitlesOf(labels);
  lines.push(`#EXT-X-STREAM-INF:${rates}${size},CODECS="${[...codecs].join(',')}"${group}`, `${base}${MEDIA_LIST}`);
  return `${lines.join('\n')}\n`;
}

function startTag(start: number): string[] {
  return start > 0 ? [`#EXT-X-START:TIME-OFFSET=${start.toFixed(3)},PRECISE=YES`] : [];
}
