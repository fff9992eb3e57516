import type { OutputStream } from '../../../core/output-stream.ts';
import type { MediaTrack, VideoTrack } from '../../../core/track.ts';
import { bitrates } from '../master/bandwidth.ts';
import { bandwidthOf, videoAttributesOf, rangeOf } from '../master/stream-inf.ts';
import { subtitleMembers, subtitlesOf } from '../master/subtitles.ts';
import type { SubtitleList } from './subtitle-list.ts';
import type { Variant } from './variant.ts';

export interface MasterOptions {
  readonly output: OutputStream;
  /** Seconds. */
  readonly targetDuration: number;
  readonly subtitles: readonly SubtitleList[];
  /** Makes the URI of a media playlist for the player. */
  readonly uri: (name: string) => string;
}

/** Builds a master playlist of version 3 (RFC 8216 4.3.4): audio and video of a variant are muxed. */
export function buildMaster(
  variants: readonly Variant[],
  { output, targetDuration, subtitles, uri }: MasterOptions,
): string {
  const listed = subtitles.map((one) => ({ track: one.track, uri: uri(one.uri) }));
  let text = `#EXTM3U\n#EXT-X-VERSION:3\n${subtitleMembers(listed)}`;
  const videos = variants.flatMap(({ tracks }) => tracks.find(isVideo) ?? []);
  for (const variant of variants) {
    const { tracks, packagers } = variant;
    const video = tracks.find(isVideo);
    const codecs = [...new Set(packagers.map(({ init }) => init.codec))].join(',');
    const attributes = video === undefined ? '' : videoAttributesOf(video, output) + rangeOf(video, videos);
    text += `#EXT-X-STREAM-INF:${bandwidthOf(bitrates(tracks, variant.listed, output, targetDuration))}${attributes},CODECS="${codecs}"${subtitlesOf(listed)}\n${uri(variant.uri)}\n`;
  }
  return text;
}

function isVideo(track: MediaTrack): track is VideoTrack {
  return track.type === 'video';
}
