import type { AudioEncodeConfig, OutputProfileConfig, VideoEncodeConfig } from '../config/model.ts';
import type { Playlist } from '../core/playlist.ts';
import type { AudioTrack, MediaTrack, Track, VideoTrack } from '../core/track.ts';

/** One track of an output stream: which input track it is made of, and under which variant name. */
export interface PlannedTrack {
  readonly from: MediaTrack;
  readonly variantName: string;
  /** Stable for the same encode and input track, whatever else comes or goes. */
  readonly key: string;
}

/** What an output profile makes of the tracks of an input stream. */
export interface Plan {
  readonly tracks: readonly PlannedTrack[];
  /** Variant names that need an encoder for these inputs. */
  readonly encoded: readonly string[];
}

const ORIGIN_MACRO = '${OriginStreamName}';

/** Name of the output stream that a profile makes of an input stream. */
export function outputName(profile: OutputProfileConfig, inputName: string): string {
  return profile.outputStreamName.replaceAll(ORIGIN_MACRO, () => inputName);
}

/** Applies the encodes of a profile to the tracks of an input, by the rules of facts/10-transcoding.md. */
export function planTracks(profile: OutputProfileConfig, inputs: readonly Track[]): Plan {
  const tracks: PlannedTrack[] = [];
  const encoded: string[] = [];
  const add = (from: MediaTrack, variantName: string, bypass: boolean) => {
    if (bypass) tracks.push({ from, variantName, key: `${from.type}/${variantName}/${from.id}` });
    else encoded.push(variantName);
  };
  for (const encode of profile.encodes.videos) {
    for (const input of inputs) if (input.type === 'video') add(input, encode.name, bypassesVideo(encode, input));
  }
  for (const encode of profile.encodes.audios) {
    for (const input of inputs) if (input.type === 'audio') add(input, encode.name, bypassesAudio(encode, input));
  }
  return { tracks, encoded };
}

/** The playlists of a profile in the form publishers read. */
export function profilePlaylists(profile: OutputProfileConfig): Playlist[] {
  return profile.playlists.map((playlist) => ({
    name: playlist.name,
    fileName: playlist.fileName,
    options: {
      webrtcAutoAbr: playlist.options.webRtcAutoAbr,
      webrtcAudioOnlyFallback: playlist.options.webrtcAudioOnlyFallback,
      hlsChunklistPathDepth: playlist.options.hlsChunklistPathDepth,
      enableTsPackaging: playlist.options.enableTsPackaging,
    },
    renditions: playlist.renditions.map(({ name, video, audio }) => ({
      name,
      videoVariantName: video,
      audioVariantName: audio,
    })),
  }));
}

function bypassesVideo(encode: VideoEncodeConfig, input: VideoTrack): boolean {
  if (encode.bypass) return true;
  const rules = encode.bypassIfMatch;
  if (rules === undefined) return false;
  return allHold([
    [rules.codec, () => sameCodec(input.codec, encode.codec)],
    [rules.width, () => compare(rules.width, input.width, encode.width)],
    [rules.height, () => compare(rules.height, input.height, encode.height)],
    [rules.framerate, () => compare(rules.framerate, input.framerate, encode.framerate)],
    [rules.sar, () => input.width * encode.height === input.height * encode.width],
  ]);
}

function bypassesAudio(encode: AudioEncodeConfig, input: AudioTrack): boolean {
  if (encode.bypass) return true;
  const rules = encode.bypassIfMatch;
  if (rules === undefined) return false;
  return allHold([
    [rules.codec, () => sameCodec(input.codec, encode.codec)],
    [rules.samplerate, () => compare(rules.samplerate, input.samplerate, encode.samplerate)],
    [rules.channel, () => compare(rules.channel, input.channels, encode.channel)],
  ]);
}

/** At least one condition must be listed, and every listed one must hold. */
function allHold(conditions: ReadonlyArray<readonly [rule: string | undefined, holds: () => boolean]>): boolean {
  const listed = conditions.filter(([rule]) => rule !== undefined);
  return listed.length > 0 && listed.every(([, holds]) => holds());
}

function sameCodec(input: string, profile: string | undefined): boolean {
  return input === profile?.toUpperCase();
}

function compare(rule: string | undefined, input: number, profile: number): boolean {
  if (rule === 'eq') return input === profile;
  if (rule === 'lte') return input <= profile;
  if (rule === 'gte') return input >= profile;
  return true;
}
