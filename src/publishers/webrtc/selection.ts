import { WEBRTC_DEFAULT, type Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { isMedia, type AudioTrack, type MediaTrack, type Track, type VideoTrack } from '../../core/track.ts';
import { hasLayers, isRoutable } from '../../webrtc/codecs.ts';

export interface PlayableRendition {
  readonly name: string;
  readonly video?: VideoTrack;
  readonly audio?: AudioTrack;
}

/** Renditions of a playlist that WebRTC can send to one viewer, with video of one codec. */
export interface Selection {
  readonly playlist: Playlist;
  /** At least one; names are unique. */
  readonly renditions: readonly PlayableRendition[];
  /** Each track of a rendition once, in the order of the playlist. */
  readonly video: readonly VideoTrack[];
  readonly audio: readonly AudioTrack[];
}

/**
 * First video and audio of supported codecs, Opus where there is any; undefined when there is neither. H.265 is another rendition
 * beside a video that more viewers decode.
 */
export function defaultPlaylist(tracks: readonly Track[]): Playlist | undefined {
  const videos = tracks.filter((track) => track.type === 'video').filter(isRoutable);
  const h265 = videos.find(isH265);
  const video = videos.find((track) => !isH265(track)) ?? h265;
  const audio = preferredAudio(tracks.filter((track) => track.type === 'audio').filter(isRoutable));
  if (video === undefined && audio === undefined) return undefined;
  return {
    name: WEBRTC_DEFAULT,
    fileName: WEBRTC_DEFAULT,
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
    },
    renditions: [
      { name: 'default', videoVariantName: video?.name, audioVariantName: audio?.name },
      ...(h265 === undefined || h265 === video
        ? []
        : [{ name: 'h265', videoVariantName: h265?.name, audioVariantName: audio?.name }]),
    ],
  };
}

function preferredAudio(tracks: readonly AudioTrack[]): AudioTrack | undefined {
  return tracks.find(({ codec }) => codec === 'OPUS') ?? tracks[0];
}

/** Lists the present tracks and those that encoders are about to put out. */
export function expectedTracks(stream: OutputStream): MediaTrack[] {
  const awaited = stream.awaited.filter(({ encoder }) => encoder?.status !== 'Failed');
  return [...stream.tracks, ...awaited].filter(isMedia).sort((one, other) => one.id - other.id);
}

function isH265({ codec }: MediaTrack): boolean {
  return codec === 'H265';
}

/**
 * Selects the renditions of a playlist that can be sent: one selection for each video codec, in the order of the playlist, but
 * H.265 last: where there is other video, it is for viewers who have nothing else of the playlist. A codec that cannot have layers has the renditions of its first track only. All audio is of one codec, Opus where there is any.
 *
 * Renditions without video are included where the playlist has no others, or its options want them. A rendition is left out if it
 * has none of its tracks, lacks one that others have, or has the name of another.
 * @returns empty when nothing is left
 */
export function selections(stream: OutputStream, playlist: Playlist): Selection[] {
  const tracks = expectedTracks(stream);
  const others = selectionsOf(tracks, playlist, (track) => isRoutable(track) && !isH265(track));
  const h265 = selectionsOf(tracks, playlist, isRoutable).filter(({ video }) => video.some(isH265));
  const isVideo = ({ video }: Selection) => video.length > 0;
  return [...others.filter(isVideo), ...h265, ...others.filter((one) => !isVideo(one))];
}

type Takes = (track: MediaTrack) => boolean;

function selectionsOf(tracks: readonly MediaTrack[], playlist: Playlist, takes: Takes): Selection[] {
  const found = playable(tracks, playlist, takes);
  const codecs = new Set(found.flatMap(({ video }) => video?.codec ?? []));
  if (codecs.size === 0) return found.length === 0 ? [] : [selectionOf(playlist, found)];
  const audioOnly = playlist.options.webrtcAudioOnlyFallback;
  return [...codecs].map((codec) => {
    const single = hasLayers(codec) ? undefined : found.find(({ video }) => video?.codec === codec)?.video;
    const fits = (video: VideoTrack) => video.codec === codec && (single === undefined || video === single);
    return selectionOf(
      playlist,
      found.filter(({ video }) => (video === undefined ? audioOnly : fits(video))),
    );
  });
}

function selectionOf(playlist: Playlist, renditions: readonly PlayableRendition[]): Selection {
  return {
    playlist,
    renditions,
    video: [...new Set(renditions.flatMap(({ video }) => video ?? []))],
    audio: [...new Set(renditions.flatMap(({ audio }) => audio ?? []))],
  };
}

/** Finds renditions that have tracks; those that lack a named one only where no other with video is whole. */
function playable(tracks: readonly MediaTrack[], playlist: Playlist, takes: Takes): PlayableRendition[] {
  const found = new Map<string, { readonly rendition: PlayableRendition; readonly whole: boolean }>();
  const audios = playlist.renditions.map((one) => named(tracks, takes, 'audio', one.audioVariantName, one.audioIndex));
  const sent = preferredAudio(audios.filter((track) => track !== undefined))?.codec;
  for (const [index, rendition] of playlist.renditions.entries()) {
    const { name = `${index}`, videoVariantName, videoIndex, audioVariantName } = rendition;
    const video = named(tracks, takes, 'video', videoVariantName, videoIndex);
    const audio = audios[index]?.codec === sent ? audios[index] : undefined;
    if ((video === undefined && audio === undefined) || found.has(name)) continue;
    const whole =
      (video === undefined) === (videoVariantName === undefined) &&
      (audio === undefined) === (audioVariantName === undefined);
    found.set(name, { rendition: { name, video, audio }, whole });
  }
  const all = [...found.values()];
  const whole = all.filter((one) => one.whole);
  const best = whole.some(({ rendition }) => rendition.video !== undefined) ? whole : all;
  return best.map(({ rendition }) => rendition);
}

function named<T extends MediaTrack['type']>(
  tracks: readonly MediaTrack[],
  takes: Takes,
  type: T,
  name: string | undefined,
  index = 0,
): Extract<MediaTrack, { type: T }> | undefined {
  if (name === undefined) return undefined;
  const variant = tracks.filter(
    (track): track is Extract<MediaTrack, { type: T }> => track.type === type && track.name === name,
  );
  const track = variant[index];
  return track !== undefined && takes(track) ? track : undefined;
}
