import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { AudioTrack, VideoTrack } from '../../core/track.ts';
import type { Rendition } from './rendition.ts';

/** What STREAM-INF says where nothing is known (facts/05-hls.md, Master content). */
const UNKNOWN_BANDWIDTH = 1_000_000;
const UNKNOWN_FRAMERATE = 30;
/** A source that declares more is not believed. */
const MAX_BANDWIDTH = 1e9;

interface Variant {
  readonly video: Rendition | undefined;
  readonly audios: readonly Rendition[];
}

/** Renditions that a playlist names and that can be played, without duplicates. */
export function playlistRenditions(playlist: Playlist, renditions: Iterable<Rendition>): Rendition[] {
  const used = new Set<Rendition>();
  for (const { video, audios } of variants(playlist, [...renditions])) {
    if (video !== undefined) used.add(video);
    for (const audio of audios) used.add(audio);
  }
  return [...used];
}

/**
 * Builds a master playlist (RFC 8216bis 4.4.6): sound always in renditions of its own.
 * @param uri of a rendition's chunklist as the player is to ask for it
 */
export function buildMaster(
  playlist: Playlist,
  renditions: Iterable<Rendition>,
  output: OutputStream,
  uri: (rendition: Rendition) => string,
): string {
  const groups = new Map<string, readonly Rendition[]>();
  const streams: string[] = [];
  for (const { video, audios } of variants(playlist, [...renditions])) {
    const leading = video ?? audios[0];
    if (leading === undefined) continue;
    let group: string | undefined;
    if (video !== undefined && audios[0] !== undefined) {
      group = `audio_${quotable(audios[0].packager.track.name)}`;
      groups.set(group, audios);
    }
    streams.push(`${streamInf(video, audios, group, output)}\n${uri(leading)}\n`);
  }
  let text = '#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n';
  for (const [group, audios] of groups) {
    audios.forEach((audio, index) => (text += `${media(group, audio, index)},URI="${uri(audio)}"\n`));
  }
  return text + streams.join('');
}

function* variants(playlist: Playlist, renditions: readonly Rendition[]): IterableIterator<Variant> {
  const named = (type: 'video' | 'audio', name: string | undefined) =>
    name === undefined ? [] : renditions.filter(({ packager: { track } }) => track.type === type && track.name === name);
  for (const { videoVariantName, audioVariantName } of playlist.renditions) {
    const audios = named('audio', audioVariantName);
    const videos = named('video', videoVariantName);
    if (videos.length === 0) yield { video: undefined, audios };
    for (const video of videos) yield { video, audios };
  }
}

function media(group: string, audio: Rendition, index: number): string {
  const track = audio.packager.track as AudioTrack;
  const { language, characteristics } = track;
  const name = language ?? track.name;
  let line = `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${quotable(name)}${index > 0 ? ` ${index + 1}` : ''}"`;
  line += `,DEFAULT=${index === 0 ? 'YES' : 'NO'},AUTOSELECT=YES`;
  if (language !== undefined) line += `,LANGUAGE="${quotable(language)}"`;
  if (characteristics !== undefined) line += `,CHARACTERISTICS="${quotable(characteristics)}"`;
  return track.channels > 0 ? `${line},CHANNELS="${track.channels}"` : line;
}

function streamInf(
  video: Rendition | undefined,
  audios: readonly Rendition[],
  group: string | undefined,
  output: OutputStream,
): string {
  const parts = video === undefined ? audios.slice(0, 1) : [video, ...audios];
  const rates = parts.map((rendition) => bitrates(rendition, output));
  const audioRates = video === undefined ? rates : rates.slice(1);
  const loudest = (of: (rate: Rates) => number) => Math.max(0, ...audioRates.map(of));
  const videoRates = video === undefined ? undefined : rates[0];
  const peak = (videoRates?.peak ?? 0) + loudest((rate) => rate.peak);
  const average = (videoRates?.average ?? 0) + loudest((rate) => rate.average);
  let line = `#EXT-X-STREAM-INF:BANDWIDTH=${peak > 0 ? Math.max(peak, average) : UNKNOWN_BANDWIDTH}`;
  if (average > 0) line += `,AVERAGE-BANDWIDTH=${average}`;
  if (video !== undefined) {
    const track = video.packager.track as VideoTrack;
    const framerate = track.framerate || output.measured(track.id)?.framerateAvg || UNKNOWN_FRAMERATE;
    if (track.width > 0 && track.height > 0) line += `,RESOLUTION=${track.width}x${track.height}`;
    line += `,FRAME-RATE=${framerate.toFixed(3)}`;
  }
  line += `,CODECS="${[...new Set(parts.map(({ packager }) => packager.init.codec))].join(',')}"`;
  return group === undefined ? line : `${line},AUDIO="${group}"`;
}

interface Rates {
  readonly peak: number;
  readonly average: number;
}

/** Bits per second, container included: of the fattest segment in the window, or what was declared if that is more. */
function bitrates({ packager: { track, window } }: Rendition, output: OutputStream): Rates {
  const measured = output.measured(track.id);
  const declared = track.bitrate > 0 && track.bitrate <= MAX_BANDWIDTH ? Math.round(track.bitrate) : 0;
  let peak = Math.max(declared, window.listed.length === 0 ? (measured?.bitrateLatest ?? 0) : 0);
  let bits = 0;
  let seconds = 0;
  for (const segment of window.listed) {
    if (segment.gap) continue;
    peak = Math.max(peak, Math.ceil((segment.bytes * 8) / segment.duration));
    bits += segment.bytes * 8;
    seconds += segment.duration;
  }
  return { peak, average: seconds > 0 ? Math.ceil(bits / seconds) : (measured?.bitrateAvg ?? 0) };
}

/** A quoted-string knows no quotes and no line breaks. */
function quotable(text: string): string {
  return text.replace(/["\r\n]/g, '');
}
