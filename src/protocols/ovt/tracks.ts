import { sampleShape } from '../../codecs/vui.ts';
import type { Playlist, Rendition } from '../../core/playlist.ts';
import type { SubtitleTrack, Track } from '../../core/track.ts';
import type { WirePlaylist, WireRendition, WireTrack } from './description.ts';
import { channelsOf, codecId, codecOf, layoutOf, MEDIA_TYPE } from './enumerations.ts';

/** Sample format of audio tracks: planar floats, as decoders here produce. */
const SAMPLE_FORMAT = 8;

/** Converts a track to its form in a description. */
export function wireTrack(track: Track): WireTrack {
  const video = track.type === 'video' || track.type === 'image' ? track : { framerate: 0, width: 0, height: 0 };
  const audio = track.type === 'audio' ? track : { samplerate: 0, channels: 0 };
  const { framerate, width, height } = video;
  const config = 'config' in track ? track.config : undefined;
  return {
    id: track.id,
    name: track.name,
    publicName: track.publicName ?? track.name,
    language: track.language ?? '',
    characteristics: track.characteristics ?? '',
    codecId: codecId(track.codec),
    mediaType: mediaTypeOf(track),
    timebaseNum: track.timebase.num,
    timebaseDen: track.timebase.den,
    bitrate: 'bitrate' in track ? Math.round(track.bitrate) : 0,
    startFrameTime: 0,
    lastFrameTime: 0,
    videoTrack: { framerate, maxFramerate: framerate, width, height, maxWidth: width, maxHeight: height },
    audioTrack: {
      samplerate: audio.samplerate,
      sampleFormat: track.type === 'audio' ? SAMPLE_FORMAT : -1,
      layout: layoutOf(audio.channels),
    },
    ...(track.type === 'data' && track.target && { eventTarget: track.target }),
    ...(track.type === 'subtitle' && { subtitle: shownHow(track) }),
    ...(config && { decoderConfig: config.toString('base64') }),
    ...(track.type === 'video' && {
      ...(track.inBandSets && { inBandSets: track.inBandSets }),
      ...(track.sar && { sar: track.sar }),
      ...(track.colour && { colour: track.colour }),
    }),
  };
}

/** Number of a track's type. */
export function mediaTypeOf({ type }: Track): number {
  return type === 'image' ? MEDIA_TYPE.video : MEDIA_TYPE[type];
}

function shownHow({ autoSelect, isDefault, forced }: Pick<SubtitleTrack, 'autoSelect' | 'isDefault' | 'forced'>) {
  return { autoSelect, isDefault, forced };
}

/** Converts a track from its form in a description; undefined for a codec that this server does not carry, or without a clock. */
export function trackOf(wire: WireTrack): Track | undefined {
  const kind = codecOf(wire.mediaType, wire.codecId);
  if (kind === undefined || wire.timebaseNum === 0 || wire.timebaseDen === 0) return undefined;
  const { framerate = 0, width = 0, height = 0 } = wire.videoTrack ?? {};
  const { samplerate = 0, layout = 0 } = wire.audioTrack ?? {};
  const { decoderConfig = '', language, characteristics, publicName } = wire;
  const config = decoderConfig === '' ? undefined : Buffer.from(decoderConfig, 'base64');
  const base = {
    id: wire.id,
    name: wire.name || kind.type,
    timebase: Object.freeze({ num: wire.timebaseNum, den: wire.timebaseDen }),
    bypass: true,
    ...(language && { language }),
    ...(characteristics && { characteristics }),
    ...(publicName && publicName !== wire.name && { publicName }),
  };
  const shape = wire.sar && sampleShape(wire.sar);
  const video = { width, height, bitrate: wire.bitrate, framerate, keyFrameInterval: 0 };
  switch (kind.type) {
    case 'video':
      return Object.freeze({
        ...base,
        ...kind,
        ...video,
        ...(config && { config }),
        ...(wire.inBandSets === true && { inBandSets: wire.inBandSets }),
        ...(shape && { sar: shape }),
        ...(wire.colour && { colour: wire.colour }),
      });
    case 'image':
      return Object.freeze({ ...base, ...kind, ...video });
    case 'audio':
      return Object.freeze({
        ...base,
        ...kind,
        samplerate,
        channels: channelsOf(layout),
        bitrate: wire.bitrate,
        ...(config && { config }),
      });
    case 'data': {
      const { eventTarget: target } = wire;
      return Object.freeze({ ...base, ...kind, ...((target === 'video' || target === 'audio') && { target }) });
    }
    case 'subtitle':
      // those of other servers have a form that is not known
      return wire.subtitle && Object.freeze({ ...base, ...kind, ...shownHow(wire.subtitle) });
  }
}

export function wirePlaylist({ name = '', fileName = '', options, renditions }: Playlist): WirePlaylist {
  return { name, fileName, options: { ...options }, renditions: renditions.map(wireRendition) };
}

export function playlistOf({ name, fileName, options = {}, renditions = [] }: WirePlaylist): Playlist {
  const {
    webrtcAutoAbr = true,
    webrtcAudioOnlyFallback = false,
    hlsChunklistPathDepth = -1,
    enableTsPackaging = false,
  } = options;
  return {
    ...(name && { name }),
    ...(fileName && { fileName }),
    options: { webrtcAutoAbr, webrtcAudioOnlyFallback, hlsChunklistPathDepth, enableTsPackaging },
    renditions: renditions.map(renditionOf),
  };
}

function wireRendition(rendition: Rendition): WireRendition {
  const { name = '', videoVariantName = '', audioVariantName = '', videoIndex = -1, audioIndex = -1 } = rendition;
  return {
    name,
    videoTrackName: videoVariantName,
    videoIndexHint: videoIndex,
    audioTrackName: audioVariantName,
    audioIndexHint: audioIndex,
  };
}

function renditionOf({
  name,
  videoTrackName,
  videoIndexHint = -1,
  audioTrackName,
  audioIndexHint = -1,
}: WireRendition): Rendition {
  return {
    ...(name && { name }),
    ...(videoTrackName && { videoVariantName: videoTrackName }),
    ...(audioTrackName && { audioVariantName: audioTrackName }),
    ...(videoIndexHint >= 0 && { videoIndex: videoIndexHint }),
    ...(audioIndexHint >= 0 && { audioIndex: audioIndexHint }),
  };
}
