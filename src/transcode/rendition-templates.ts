import type { OutputProfileConfig } from '../config/model.ts';
import type { Rendition } from '../core/playlist.ts';
import type { AudioTrack, MediaTrack, Track, VideoTrack } from '../core/track.ts';

type Template = OutputProfileConfig['playlists'][number]['rendition_templates'][number];
type VideoTemplate = NonNullable<Template['video_template']>;
type AudioTemplate = NonNullable<Template['audio_template']>;

/** Tracks that a rendition can name: one track of a variant, or all of them. */
interface Choice<T extends MediaTrack> {
  readonly track: T;
  /** Absent for all tracks of the variant. */
  readonly index?: number;
}

const MACRO = /\$\{(\w+)\}/g;

/**
 * Makes the renditions of templates from the tracks of a stream: one for each pair of fitting video and audio or, if none
 * of one kind fits, for each of the other. If all tracks of an audio variant fit, such as its languages, they are one
 * choice. Equal names are numbered.
 */
export function expandTemplates(templates: readonly Template[], tracks: readonly Track[]): Rendition[] {
  const names = new Map<string, number>();
  return templates.flatMap((template) => {
    const { video_template: forVideo, audio_template: forAudio } = template;
    const videos = forVideo === undefined ? [] : videoChoices(forVideo, tracks);
    const audios = forAudio === undefined ? [] : audioChoices(forAudio, tracks);
    return pairs(videos, audios).map(([video, audio]) => ({
      name: unique(expandName(template.name, video?.track, audio?.track), names),
      ...(video && { videoVariantName: video.track.name }),
      ...(video?.index !== undefined && { videoIndex: video.index }),
      ...(audio && { audioVariantName: audio.track.name }),
      ...(audio?.index !== undefined && { audioIndex: audio.index }),
    }));
  });
}

function pairs<V, A>(videos: readonly V[], audios: readonly A[]): (readonly [V | undefined, A | undefined])[] {
  if (videos.length === 0) return audios.map((audio) => [undefined, audio]);
  if (audios.length === 0) return videos.map((video) => [video, undefined]);
  return videos.flatMap((video) => audios.map((audio) => [video, audio] as const));
}

/** Each video track is a quality of its own. */
function videoChoices(template: VideoTemplate, tracks: readonly Track[]): Choice<VideoTrack>[] {
  return byVariant(tracks.filter((track) => track.type === 'video')).flatMap((variant) =>
    variant.flatMap((track, index) => {
      if (!fitsVideo(template, track)) return [];
      return variant.length === 1 ? [{ track }] : [{ track, index }];
    }),
  );
}

function audioChoices(template: AudioTemplate, tracks: readonly Track[]): Choice<AudioTrack>[] {
  return byVariant(tracks.filter((track) => track.type === 'audio')).flatMap((variant): Choice<AudioTrack>[] => {
    const fitting = variant.flatMap((track, index) => (fitsAudio(template, track) ? [{ track, index }] : []));
    const [first] = fitting;
    return first !== undefined && fitting.length === variant.length ? [{ track: first.track }] : fitting;
  });
}

function byVariant<T extends MediaTrack>(tracks: readonly T[]): T[][] {
  return [...Map.groupBy(tracks, ({ name }) => name).values()];
}

function fitsVideo(template: VideoTemplate, track: VideoTrack): boolean {
  return (
    fits(template, track) &&
    isWithin(track.width, template.minWidth, template.maxWidth) &&
    isWithin(track.height, template.minHeight, template.maxHeight) &&
    isWithin(track.framerate, template.minFramerate, template.maxFramerate)
  );
}

function fitsAudio(template: AudioTemplate, track: AudioTrack): boolean {
  return (
    fits(template, track) &&
    isWithin(track.samplerate, template.minSamplerate, template.maxSamplerate) &&
    isWithin(track.channels, template.minChannel, template.maxChannel)
  );
}

function fits(template: VideoTemplate | AudioTemplate, track: MediaTrack): boolean {
  const { variantName, encodingType, minBitrate, maxBitrate } = template;
  if (variantName !== undefined && variantName !== track.name) return false;
  if (encodingType !== 'all' && (encodingType === 'bypassed') !== track.bypass) return false;
  return isWithin(track.bitrate, minBitrate, maxBitrate);
}

function isWithin(value: number, min = -Infinity, max = Infinity): boolean {
  return value >= min && value <= max;
}

/** Expands macros; unknown ones, or those without a value, stay. */
function expandName(name: string, video: VideoTrack | undefined, audio: AudioTrack | undefined): string {
  const values: Readonly<Record<string, number | undefined>> = {
    Width: video?.width,
    Height: video?.height,
    Framerate: video && Math.round(video.framerate * 100) / 100,
    Bitrate: (video ?? audio)?.bitrate,
    Samplerate: audio?.samplerate,
    Channel: audio?.channels,
  };
  return name.replaceAll(MACRO, (macro, word: string) => {
    const value = Object.hasOwn(values, word) ? values[word] : undefined;
    return value === undefined ? macro : String(value);
  });
}

function unique(name: string, names: Map<string, number>): string {
  const count = (names.get(name) ?? 0) + 1;
  names.set(name, count);
  return count === 1 ? name : unique(`${name}_${count}`, names);
}
