import Type from 'typebox';
import { choice, flag, integer, optional, parsed, repeated, section, text, type Fail } from '../blocks.ts';

const bound = () => Type.Optional(integer());

const template = () => ({
  variantName: Type.Optional(text()),
  encodingType: choice(['all', 'encoded', 'bypassed'], 'all'),
  minBitrate: bound(),
  maxBitrate: bound(),
});

/** Makes one rendition of every pair of tracks that matches. */
const RenditionTemplate = Type.Object({
  /** May hold `${Width}`, `${Height}`, `${Bitrate}`, `${Framerate}`, `${Samplerate}`, `${Channel}`. */
  name: text(),
  video_template: optional(
    {
      ...template(),
      minWidth: bound(),
      maxWidth: bound(),
      minHeight: bound(),
      maxHeight: bound(),
      minFramerate: bound(),
      maxFramerate: bound(),
    },
    { xml: 'VideoTemplate', aliases: ['videoTemplate'] },
  ),
  audio_template: optional(
    {
      ...template(),
      minSamplerate: bound(),
      maxSamplerate: bound(),
      minChannel: bound(),
      maxChannel: bound(),
    },
    { xml: 'AudioTemplate', aliases: ['audioTemplate'] },
  ),
});

/** Rejects words that are part of the names of LL-HLS and HLS files. */
function parseFileName(given: string): string | undefined {
  return /^[^/\\?#\s\p{C}]+$/u.test(given) && !/playlist|chunklist/i.test(given) ? given : undefined;
}

/** @param webRtcAutoAbr default: OvenMediaEngine has another one in multiplex channels than in output profiles */
const playlistForm = (webRtcAutoAbr: boolean) =>
  Type.Object({
    name: Type.Optional(text()),
    fileName: parsed('a file name without "playlist" and "chunklist"', parseFileName),
    options: section({
      webRtcAutoAbr: flag(webRtcAutoAbr, { aliases: ['webrtcAutoAbr'] }),
      webrtcAudioOnlyFallback: flag(false, { aliases: ['webRtcAudioOnlyFallback'] }),
      hlsChunklistPathDepth: integer(-1, { min: -1, max: 16 }),
      enableTsPackaging: flag(false),
      enableSubtitles: flag(true),
    }),
    renditions: repeated(
      Type.Object({
        name: Type.Optional(text()),
        video: Type.Optional(text()),
        audio: Type.Optional(text()),
        videoIndexHint: integer(-1, { min: -1 }),
        audioIndexHint: integer(-1, { min: -1 }),
      }),
      'Rendition',
    ),
    rendition_templates: repeated(RenditionTemplate, 'RenditionTemplate', { aliases: ['renditionTemplates'] }),
  });

export const Playlist = playlistForm(true);
export const MultiplexPlaylist = playlistForm(false);

const choiceOfTracks = (xml: string) =>
  repeated(Type.Object({ name: text(), indexHint: integer(-1, { min: -1 }) }), xml);

interface TrackSet {
  videos: unknown[];
  audios: unknown[];
}

/** A named selection of tracks, for tasks. */
export const TrackSet = Type.Object(
  {
    name: text(),
    strict: flag(false),
    videos: choiceOfTracks('Video'),
    audios: choiceOfTracks('Audio'),
  },
  {
    rule: ({ videos, audios }: TrackSet, fail: Fail) => {
      if (videos.length + audios.length === 0) fail([], 'names no track');
    },
  },
);
