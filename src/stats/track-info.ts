import type { Measured } from '../core/meter.ts';
import type { Stream } from '../core/stream.ts';
import type { AudioTrack, ImageTrack, MediaTrack, SubtitleTrack, Track, VideoTrack } from '../core/track.ts';
import { localTime } from '../lib/local-time.ts';
import type { TrackInfo } from './track-schema.ts';

const TYPE_NAMES = { video: 'Video', audio: 'Audio', image: 'Video', data: 'Data', subtitle: 'Subtitle' } as const;

/** The tracks of a stream (docs/compatibility.md#stream-objects). */
export function tracksInfo(stream: Stream): TrackInfo[] {
  return stream.tracks.map((track) => trackInfo(track, stream.measured(track.id)));
}

/** @param measured undefined for a track without measurements */
export function trackInfo(track: Track, measured: Measured | undefined): TrackInfo {
  const type = TYPE_NAMES[track.type];
  const common = { id: track.id, name: track.name === '' ? type : track.name, type };
  switch (track.type) {
    case 'audio':
      return { ...common, audio: audioInfo(track, measured) };
    case 'video':
    case 'image':
      return { ...common, video: videoInfo(track, measured) };
    case 'data':
      return { ...common, data: { codec: track.codec } };
    case 'subtitle':
      return { ...common, subtitle: subtitleInfo(track) };
  }
}

function videoInfo(track: VideoTrack | ImageTrack, measured: Measured | undefined): NonNullable<TrackInfo['video']> {
  const { width, height, framerate, keyFrameInterval } = track;
  return {
    ...mediaInfo(track, measured),
    width,
    height,
    maxWidth: Math.max(width, measured?.maxWidth ?? 0),
    maxHeight: Math.max(height, measured?.maxHeight ?? 0),
    framerate: Math.fround(framerate || (measured?.framerateAvg ?? 0)),
    framerateConf: Math.fround(framerate),
    maxFramerate: Math.fround(Math.max(framerate, measured?.maxFramerate ?? 0)),
    keyFrameInterval: Math.fround(keyFrameInterval || (measured?.keyFrameIntervalAvg ?? 0)),
    keyFrameIntervalConf: Math.fround(keyFrameInterval),
    ...(measured && {
      framerateAvg: Math.fround(measured.framerateAvg),
      framerateLatest: Math.fround(measured.framerateLatest),
      keyFrameIntervalAvg: Math.fround(measured.keyFrameIntervalAvg),
      keyFrameIntervalLatest: Math.fround(measured.keyFrameIntervalLatest),
      hasBframes: measured.hasBframes,
      ...(track.type === 'video' &&
        measured.frames > 0 &&
        measured.keyFrames !== 'closed' && { keyFrames: measured.keyFrames }),
      deltaFramesSinceLastKeyFrame: measured.deltaFramesSinceLastKeyFrame,
    }),
  };
}

function audioInfo(track: AudioTrack, measured: Measured | undefined): NonNullable<TrackInfo['audio']> {
  return { ...mediaInfo(track, measured), samplerate: track.samplerate, channel: track.channels };
}

function subtitleInfo(track: SubtitleTrack): NonNullable<TrackInfo['subtitle']> {
  const { codec, autoSelect, isDefault, forced, language, characteristics, timebase } = track;
  return {
    codec,
    codecStatus: 'Ready',
    autoSelect,
    default: isDefault,
    forced,
    language: language || undefined,
    characteristics: characteristics || undefined,
    timebase,
  };
}

function mediaInfo(track: MediaTrack | ImageTrack, measured: Measured | undefined) {
  const { bypass, encoder, codec, bitrate, language, characteristics, timebase } = track;
  return {
    bypass,
    codec,
    ...(bypass ? { codecStatus: 'Ready' } : { codecModule: encoder?.module ?? 'none', codecStatus: encoder?.status }),
    language: language || undefined,
    characteristics: characteristics || undefined,
    bitrate: bitrate || (measured?.bitrateAvg ?? 0),
    bitrateConf: bitrate,
    timebase: timebase.num > 0 && timebase.den > 0 ? timebase : undefined,
    ...(measured && {
      bitrateAvg: measured.bitrateAvg,
      bitrateLatest: measured.bitrateLatest,
      configChangeCount: measured.configChangeCount,
      lastConfigChanged:
        measured.configChangeCount > 0 && measured.lastConfigChanged
          ? localTime(measured.lastConfigChanged.getTime())
          : undefined,
    }),
  };
}
