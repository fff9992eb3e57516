import { buildFlacHeader } from '../../codecs/flac.ts';
import { buildOpusHead, parseOpusConfig } from '../../codecs/opus.ts';
import type { AudioCodec, AudioTrack, MediaTrack, Track, VideoTrack } from '../../core/track.ts';
import { audioTagHead, fourCcOf, videoTagHead } from './tag-head.ts';

/** Codec ids of onMetaData (FLV specification annex E.5). */
const CODEC_IDS: Readonly<Record<string, number>> = { H264: 7, AAC: 10, MP3: 2 };

/** Properties of onMetaData. */
export interface Metadata {
  readonly [name: string]: string | number | boolean | Metadata;
}

/**
 * Body of the tag that starts a track, in pieces; none for a track that has no configuration.
 * @param trackId other than 0 for a further track (Enhanced RTMP v2, "Multitrack")
 * @throws BitstreamError when its configuration is malformed
 */
export function configTag(track: MediaTrack, trackId = 0): Buffer[] {
  const { config } = track;
  if (config === undefined) return [];
  if (track.type === 'video') return [videoTagHead(track.codec, 'config', true, 0, trackId), config];
  return [audioTagHead(track.codec, 'config', trackId), audioHeader(track.codec, config)];
}

function audioHeader(codec: AudioCodec, config: Buffer): Buffer {
  if (codec === 'OPUS') return buildOpusHead(parseOpusConfig(config));
  return codec === 'FLAC' ? buildFlacHeader(config) : config;
}

/** Properties of onMetaData, as encoders send them; further tracks of a kind as Enhanced RTMP v2 has them. */
export function metadataOf(tracks: readonly Track[]): Metadata {
  const videos = tracks.filter((track) => track.type === 'video');
  const audios = tracks.filter((track) => track.type === 'audio');
  const [video, ...moreVideo] = videos;
  const [audio, ...moreAudio] = audios;
  return {
    duration: 0,
    encoder: 'Kiln',
    ...(video && { ...videoProperties(video), framerate: video.framerate, videocodecid: codecId(video) }),
    ...(audio && {
      ...audioProperties(audio),
      audiosamplesize: 16,
      stereo: audio.channels > 1,
      audiocodecid: codecId(audio),
    }),
    ...(moreVideo.length > 0 && { videoTrackIdInfoMap: byTrackId(moreVideo, videoProperties) }),
    ...(moreAudio.length > 0 && { audioTrackIdInfoMap: byTrackId(moreAudio, audioProperties) }),
  };
}

function videoProperties({ width, height, bitrate }: VideoTrack): Metadata {
  return { width, height, videodatarate: bitrate / 1000 };
}

function audioProperties({ samplerate, bitrate }: AudioTrack): Metadata {
  return { audiosamplerate: samplerate, audiodatarate: bitrate / 1000 };
}

function byTrackId<T extends MediaTrack>(tracks: readonly T[], properties: (track: T) => Metadata): Metadata {
  return Object.fromEntries(
    tracks.map((track, index) => [
      `${index + 1}`,
      {
        ...properties(track),
        codec: fourCcOf(track.codec) ?? '',
        ...(track.language !== undefined && { language: track.language }),
      },
    ]),
  );
}

/** FLV's own id of a codec, or its FourCC as a number. */
function codecId({ codec }: MediaTrack): number {
  return CODEC_IDS[codec] ?? Buffer.from(fourCcOf(codec) ?? '\0\0\0\0', 'latin1').readUInt32BE();
}
