import type { OutputStream } from '../../../core/output-stream.ts';
import type { MediaTrack, VideoTrack } from '../../../core/track.ts';
import { bitrates } from '../master/bandwidth.ts';
import { bandwidthOf, videoAttributesOf, rangeOf } from '../master/stream-inf.ts';
import { captionMembers, captionsOf, withCaptions, type ListedCaptions } from '../master/captions.ts';
import { subtitleMembers, subtitlesOf } from '../master/subtitles.ts';
import type { SubtitleList } from './subtitle-list.ts';
import type { Variant } from './variant.ts';

export interface MasterOptions {
  readonly output: OutputStream;
  /** Seconds. */
  readonly targetDuration: number;
  readonly captions: ListedCaptions;
  readonly subtitles: readonly SubtitleList[];
  /** Makes the URI of a media playlist for the player: first of the leading one. */
  readonly uri: (name: string) => string;
}

/** Builds a master playlist of version 3 (RFC 8216 4.3.4): audio and video of a variant are muxed. */
export function buildMaster(
  variants: readonly Variant[],
  { output, targetDuration, captions, subtitles, uri }: MasterOptions,
): string {
  const videos = variants.flatMap(({ tracks }) => tracks.find(isVideo) ?? []);
  const beside = subtitlesOf(subtitles) + captionsOf(captions, videos.length > 0);
  let streams = '';
  for (const variant of variants) {
    const { tracks, packagers, listed } = variant;
    const video = tracks.find(isVideo);
    const codecs = [...new Set(packagers.map(({ init }) => init.codec))].join(',');
    const attributes = video === undefined ? '' : videoAttributesOf(video, output) + rangeOf(video, videos);
    const rates = bandwidthOf(bitrates(tracks, listed, output, targetDuration));
    streams += `#EXT-X-STREAM-INF:${rates}${attributes},CODECS="${codecs}"${beside}\n${uri(variant.uri)}\n`;
  }
  const members = subtitleMembers(subtitles.map((one) => ({ track: one.track, uri: uri(one.uri) })));
  return `#EXTM3U\n#EXT-X-VERSION:${withCaptions(3, captions)}\n${captionMembers(captions)}${members}${streams}`;
}

function isVideo(track: MediaTrack): track is VideoTrack {
  return track.type === 'video';
}
