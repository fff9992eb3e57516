import type { OutputStream } from '../../../core/output-stream.ts';
import type { AudioTrack, VideoTrack } from '../../../core/track.ts';
import { bitrates, type Rates } from '../master/bandwidth.ts';
import { bandwidthOf, rangeOf, resolutionOf, videoAttributesOf } from '../master/stream-inf.ts';
import { renditionsOf, type Variant } from '../master/variants.ts';
import { describeLanguage } from '../master/language.ts';
import { captionMembers, captionsOf, withCaptions, type ListedCaptions } from '../master/captions.ts';
import { quotable, subtitleMembers, subtitlesOf } from '../master/subtitles.ts';
import type { AnyRendition, Rendition, SubtitleRendition } from './rendition.ts';

export interface MasterOptions {
  readonly output: OutputStream;
  /** Seconds. */
  readonly targetDuration: number;
  readonly captions: ListedCaptions;
  readonly subtitles: readonly SubtitleRendition[];
  /** Makes the URI of a rendition's chunklist for the player: first of the leading one. */
  readonly uri: (rendition: AnyRendition) => string;
  /** Makes the URI of a video's playlist of I-frames; undefined where players do not rewind. */
  readonly iFrames?: ((rendition: Rendition) => string) | undefined;
}

/** Builds a master playlist (RFC 8216bis 4.4.6): audio is in separate renditions, with a group for each encoding. */
export function buildMaster(
  variants: readonly Variant<Rendition>[],
  { output, targetDuration, captions, subtitles, uri, iFrames }: MasterOptions,
): string {
  const rates = new Map(
    renditionsOf(variants).map((one) => [
      one,
      bitrates([one.track], one.packager.window.listed, output, targetDuration),
    ]),
  );
  const groups: Groups = new Map();
  const closedCaptions = captionsOf(
    captions,
    variants.some(({ video }) => video !== undefined),
  );
  const videos = variants.flatMap(({ video }) => (video === undefined ? [] : [video.track as VideoTrack]));
  let streams = '';
  for (const { video, audios } of variants) {
    const leading = video ?? audios[0];
    if (leading === undefined) continue;
    const group =
      audios.length === 0 || (video === undefined && audios.length === 1) ? undefined : groupOf(audios, groups);
    let line = bandwidth(video, audios, rates);
    if (video !== undefined) line += videoAttributesOf(video.track as VideoTrack, output);
    if (video !== undefined) line += rangeOf(video.track as VideoTrack, videos);
    const codecs = new Set(renditionsOf([{ video, audios }]).map(({ packager }) => packager.init.codec));
    line += `,CODECS="${[...codecs].join(',')}"`;
    if (group !== undefined) line += `,AUDIO="${group}"`;
    line += subtitlesOf(subtitles);
    // on all variants or on none
    line += closedCaptions;
    streams += `#EXT-X-STREAM-INF:${line}\n${uri(leading)}\n`;
  }
  // true of all segments of all renditions
  const isIndependent = renditionsOf(variants).every(({ packager }) => packager.independent);
  const version = withCaptions(6, captions);
  let text = `#EXTM3U\n#EXT-X-VERSION:${version}\n${isIndependent ? '#EXT-X-INDEPENDENT-SEGMENTS\n' : ''}`;
  text += sessionKeys(renditionsOf(variants));
  for (const [group, audios] of groups) text += members(group, audios, uri);
  text += captionMembers(captions);
  text += subtitleMembers(subtitles.map((one) => ({ track: one.track, uri: uri(one) })));
  return text + streams + (iFrames === undefined ? '' : iFrameStreams(variants, output, rates, iFrames));
}

/** Keys of all renditions, which players may ask for before they load media playlists (RFC 8216bis 4.4.6.4). */
function sessionKeys(renditions: readonly Rendition[]): string {
  const keys = new Set(renditions.flatMap(({ packager }) => packager.init.sessionKeys ?? []));
  return [...keys].map((key) => `#EXT-X-SESSION-KEY:${key}\n`).join('');
}

/** Playlists of I-frames with which players show where they rewind to, one for each video (RFC 8216 section 4.3.4.3). */
function iFrameStreams(
  variants: readonly Variant<Rendition>[],
  output: OutputStream,
  rates: ReadonlyMap<Rendition, Rates>,
  uri: (rendition: Rendition) => string,
): string {
  const videos = new Set(variants.flatMap(({ video }) => video ?? []));
  return [...videos]
    .map((video) => {
      const { peak = 0 } = rates.get(video) ?? {};
      const size = resolutionOf(video.track as VideoTrack);
      const line = `${bandwidthOf({ peak, average: 0 })}${size},CODECS="${video.packager.init.codec}"`;
      return `#EXT-X-I-FRAME-STREAM-INF:${line},URI="${uri(video)}"\n`;
    })
    .join('');
}

type Groups = Map<string, readonly Rendition[]>;

/** Finds or adds the group of some audios: named after their variant, and numbered if a playlist has several selections of it. */
function groupOf(audios: readonly Rendition[], groups: Groups): string {
  const base = `audio_${quotable(audios[0]?.packager.track.name ?? '')}`;
  for (let count = 1; ; count++) {
    const group = count === 1 ? base : `${base}_${count}`;
    const members = groups.get(group);
    if (members === undefined) groups.set(group, audios);
    if (
      members === undefined ||
      (members.length === audios.length && members.every((member, at) => member === audios[at]))
    )
      return group;
  }
}

/**
 * Lists the members of a group. Names are unique in it. They do not contain the encoding, so that a language has the same name in
 * every group. AUTOSELECT is set only on members that a player can tell apart.
 */
function members(group: string, audios: readonly Rendition[], uri: (rendition: Rendition) => string): string {
  const names = new Map<string, number>();
  const seen = new Set<string>();
  let text = '';
  audios.forEach((audio, index) => {
    const { language, characteristics = '', publicName, channels } = audio.packager.track as AudioTrack;
    const { tag, name: spoken } = describeLanguage(language);
    const name = quotable(publicName ?? spoken);
    const count = (names.get(name) ?? 0) + 1;
    names.set(name, count);
    const apart = JSON.stringify([tag, characteristics]);
    const first = index === 0;
    text += `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}${count > 1 ? ` ${count}` : ''}"`;
    text += `,DEFAULT=${first ? 'YES' : 'NO'},AUTOSELECT=${seen.has(apart) ? 'NO' : 'YES'}`;
    if (tag !== undefined) text += `,LANGUAGE="${tag}"`;
    if (characteristics !== '') text += `,CHARACTERISTICS="${quotable(characteristics)}"`;
    if (channels > 0) text += `,CHANNELS="${channels}"`;
    text += `,URI="${uri(audio)}"\n`;
    seen.add(apart);
  });
  return text;
}

/** Adds the rates of the video and of the audio with the highest rate. */
function bandwidth(
  video: Rendition | undefined,
  audios: readonly Rendition[],
  rates: ReadonlyMap<Rendition, Rates>,
): string {
  const sum = (of: (rate: Rates | undefined) => number | undefined) =>
    (of(video && rates.get(video)) ?? 0) + Math.max(0, ...audios.map((audio) => of(rates.get(audio)) ?? 0));
  const peak = sum((rate) => rate?.peak);
  const average = sum((rate) => rate?.average);
  return bandwidthOf({ peak, average });
}
