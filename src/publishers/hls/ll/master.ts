import type { OutputStream } from '../../../core/stream.ts';
import type { AudioTrack, VideoTrack } from '../../../core/track.ts';
import { bitrates, type Rates } from '../master/bandwidth.ts';
import { bandwidthOf, pictureOf, rangeOf } from '../master/stream-inf.ts';
import { renditionsOf, type Variant } from '../master/variants.ts';
import { describeLanguage } from './language.ts';
import type { Rendition } from './rendition.ts';

/** What a master playlist is made of. */
export interface MasterOptions {
  readonly output: OutputStream;
  /** Seconds. */
  readonly targetDuration: number;
  /** Closed captions have been seen in a picture. */
  readonly captions: boolean;
  /** A rendition's chunklist as the player is to ask for it. */
  readonly uri: (rendition: Rendition) => string;
}

/** Builds a master playlist (RFC 8216bis 4.4.6): sound always in renditions of its own, in a group for each encoding. */
export function buildMaster(
  variants: readonly Variant<Rendition>[],
  { output, targetDuration, captions, uri }: MasterOptions,
): string {
  const rates = new Map(
    renditionsOf(variants).map((one) => [
      one,
      bitrates([one.track], one.packager.window.listed, output, targetDuration),
    ]),
  );
  const groups: Groups = new Map();
  // players that are not told look for some in a segment, which a young stream may not have (Shaka Player)
  const hasNoCaptions = !captions && variants.some(({ video }) => video !== undefined);
  const videos = variants.flatMap(({ video }) => (video === undefined ? [] : [video.track as VideoTrack]));
  let streams = '';
  for (const { video, audios } of variants) {
    const leading = video ?? audios[0];
    if (leading === undefined) continue;
    const group =
      audios.length === 0 || (video === undefined && audios.length === 1) ? undefined : groupOf(audios, groups);
    let line = bandwidth(video, audios, rates);
    if (video !== undefined) line += pictureOf(video.track as VideoTrack, output);
    if (video !== undefined) line += rangeOf(video.track as VideoTrack, videos);
    const codecs = new Set(renditionsOf([{ video, audios }]).map(({ packager }) => packager.init.codec));
    line += `,CODECS="${[...codecs].join(',')}"`;
    if (group !== undefined) line += `,AUDIO="${group}"`;
    // all variants say so, or none
    if (hasNoCaptions) line += ',CLOSED-CAPTIONS=NONE';
    streams += `#EXT-X-STREAM-INF:${line}\n${uri(leading)}\n`;
  }
  // of all segments of all renditions, or of none
  const isIndependent = renditionsOf(variants).every(({ packager }) => packager.independent);
  let text = `#EXTM3U\n#EXT-X-VERSION:6\n${isIndependent ? '#EXT-X-INDEPENDENT-SEGMENTS\n' : ''}`;
  for (const [group, audios] of groups) text += members(group, audios, uri);
  return text + streams;
}

type Groups = Map<string, readonly Rendition[]>;

/** The group of these sounds, listed when it is new: called after their variant, and numbered where a playlist picks several of it apart. */
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
 * The members of a group. Names are unique in it, and those of one language are the same in every group: they do
 * not tell the encoding. A player may choose by itself only among those that it can tell apart.
 */
function members(group: string, audios: readonly Rendition[], uri: (rendition: Rendition) => string): string {
  const names = new Map<string, number>();
  const told = new Set<string>();
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
    text += `,DEFAULT=${first ? 'YES' : 'NO'},AUTOSELECT=${told.has(apart) ? 'NO' : 'YES'}`;
    if (tag !== undefined) text += `,LANGUAGE="${tag}"`;
    if (characteristics !== '') text += `,CHARACTERISTICS="${quotable(characteristics)}"`;
    if (channels > 0) text += `,CHANNELS="${channels}"`;
    text += `,URI="${uri(audio)}"\n`;
    told.add(apart);
  });
  return text;
}

/** A picture and the fattest sound that it is played with. */
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

/** A quoted-string knows no quotes and no line breaks. */
function quotable(text: string): string {
  return text.replace(/["\r\n]/g, '');
}
