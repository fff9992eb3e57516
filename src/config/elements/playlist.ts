import Type from 'typebox';
import { choice, flag, integer, optional, parsed, repeated, section, text, type Fail } from '../blocks.ts';

const bound = () => Type.Optional(integer());
const names = { xml: 'VariantName', aliases: ['variantName'] };

const template = () => ({
  variant_name: Type.Optional(text(names)),
  encoding_type: choice(['all', 'encoded', 'bypassed'], 'all', { xml: 'EncodingType', aliases: ['encodingType'] }),
});

function limits(...keys: string[]) {
  const properties: Record<string, ReturnType<typeof bound>> = {};
  for (const key of keys) {
    for (const end of ['Min', 'Max']) {
      const annotated = { ...integer(), xml: `${end}${key}`, aliases: [`${end.toLowerCase()}${key}`] };
      properties[`${end.toLowerCase()}_${key.toLowerCase()}`] = Type.Optional(annotated);
    }
  }
  return properties;
}

/** Makes one rendition of every pair of tracks that fits. */
const RenditionTemplate = Type.Object({
  /** May hold `${Width}`, `${Height}`, `${Bitrate}`, `${Framerate}`, `${Samplerate}`, `${Channel}`. */
  name: text(),
  video_template: optional(
    { ...template(), ...limits('Width', 'Height', 'Framerate', 'Bitrate') },
    { xml: 'VideoTemplate', aliases: ['videoTemplate'] },
  ),
  audio_template: optional(
    { ...template(), ...limits('Bitrate', 'Samplerate', 'Channel') },
    { xml: 'AudioTemplate', aliases: ['audioTemplate'] },
  ),
});

/** Words that the names of LL-HLS and HLS files are told apart by. */
function parseFileName(given: string): string | undefined {
  return /^[^/\\?#\s]+$/.test(given) && !/playlist|chunklist/i.test(given) ? given : undefined;
}

export const Playlist = Type.Object({
  name: Type.Optional(text()),
  fileName: parsed('a file name without "playlist" and "chunklist"', parseFileName),
  options: section({
    webRtcAutoAbr: flag(true, { aliases: ['webrtcAutoAbr'] }),
    webrtcAudioOnlyFallback: flag(false, { xml: 'WebRtcAudioOnlyFallback', aliases: ['webRtcAudioOnlyFallback'] }),
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

const choiceOfTracks = (xml: string) =>
  repeated(Type.Object({ name: text(), indexHint: integer(-1, { min: -1 }) }), xml);

interface TrackSet {
  videos: unknown[];
  audios: unknown[];
}

/** A named choice of tracks, for tasks. */
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
