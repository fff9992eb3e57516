import type { OutputStream } from '../../core/output-stream.ts';
import { isShared, type Playlist, type Rendition } from '../../core/playlist.ts';
import { isMedia, type MediaTrack, type Track } from '../../core/track.ts';
import { fourCcOf } from '../../containers/flv/tag-head.ts';
import { kilnError } from '../../errors.ts';
import { isTsPackable } from '../../packaging/frame-run.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';

/** Codecs that FLV had before Enhanced RTMP. */
const CLASSIC: ReadonlySet<string> = new Set(['H264', 'AAC', 'MP3']);
/** Codec of the track that is sent, where there are several. */
const PREFERRED: ReadonlySet<string> = new Set(['AAC']);
/** Such codecs for players that cannot say what they take. */
const PREFERRED_UNASKED: ReadonlySet<string> = new Set(['H264', 'AAC']);
/** Codecs whose frames are enough to decode them. */
const WITHOUT_CONFIG: ReadonlySet<string> = new Set(['MP3', 'VP8', 'AC3', 'EAC3']);
/** Tracks of a kind beyond these are left out: their ids have one byte, and players make a decoder of each. */
const MAX_TRACKS = 16;

/** Finds the playlist that a player names; undefined where it names none. @throws fileNotFound */
export function playlistOf(output: OutputStream, fileName: string | undefined): Playlist | undefined {
  if (fileName === undefined) return undefined;
  const playlist = output.playlist(fileName);
  if (playlist === undefined || !isShared(playlist)) throw kilnError('fileNotFound');
  return playlist;
}

/**
 * Tracks that a player gets, the default one of a kind first: one of each kind, or all that a playlist or the stream has where it takes
 * several. Of a playlist it gets the first rendition whose video it takes. AAC is preferred where no playlist is named.
 */
export function chosenTracks(
  tracks: readonly Track[],
  playlist: Playlist | undefined,
  ability: PlayerAbility,
): MediaTrack[] {
  const taken = tracks.filter((track) => isMedia(track) && isTaken(track, ability)) as MediaTrack[];
  const preferred = ability.isAssumed === true ? PREFERRED_UNASKED : PREFERRED;
  const choices = choicesOf(tracks, taken, playlist, preferred);
  const first = bestOf(choices);
  if (!ability.multitrack) return first;
  const others = playlist === undefined ? taken : choices.flatMap((one) => one.tracks);
  return ofEachKind([...new Set([...first, ...others])]);
}

/** One track of each kind in MPEG-TS, chosen as by `chosenTracks`. */
export function chosenForTs(tracks: readonly Track[], playlist: Playlist | undefined): MediaTrack[] {
  const taken = tracks.filter((track) => isMedia(track) && isTsPackable(track)) as MediaTrack[];
  return bestOf(choicesOf(tracks, taken, playlist, PREFERRED_UNASKED));
}

/** @param chosen tracks that a player gets now @throws codecsNotTaken when there are none, and nothing more is to come */
export function checkTaken(output: OutputStream, chosen: readonly Track[]): void {
  if (output.awaited.length > 0 || chosen.length > 0) return;
  const codecs = output.tracks.filter(isMedia).map(({ codec }) => codec);
  throw kilnError('codecsNotTaken', [...new Set(codecs)].join(', '));
}

interface Choice {
  readonly tracks: readonly MediaTrack[];
  /** Weight of what the player does not take of the rendition: its video above all. */
  readonly missing: number;
}

function choicesOf(
  tracks: readonly Track[],
  taken: readonly MediaTrack[],
  playlist: Playlist | undefined,
  preferred: ReadonlySet<string>,
): Choice[] {
  const renditions = playlist?.renditions ?? [{}];
  return renditions.map((rendition) => choice(tracks, taken, rendition, preferred));
}

function bestOf(choices: readonly Choice[]): MediaTrack[] {
  const [best] = [...choices].sort((a, b) => a.missing - b.missing);
  return [...(best?.tracks ?? [])];
}

function choice(
  tracks: readonly Track[],
  taken: readonly MediaTrack[],
  rendition: Rendition,
  codecs: ReadonlySet<string>,
): Choice {
  const one = (type: 'video' | 'audio', name: string | undefined, index: number): [MediaTrack[], boolean] => {
    const isOf = (track: Track): boolean => track.type === type && (name === undefined || track.name === name);
    const all = tracks.filter(isOf);
    // the index counts all tracks of the variant
    const named = name === undefined ? taken.filter(isOf) : taken.filter((track) => track === all[index]);
    const preferred = named.find(({ codec }) => codecs.has(codec)) ?? named[0];
    return [preferred === undefined ? [] : [preferred], all.length > 0 && preferred === undefined];
  };
  const { videoVariantName, videoIndex = 0, audioVariantName, audioIndex = 0 } = rendition;
  const isWhole = videoVariantName === undefined && audioVariantName === undefined;
  const [video, noVideo] =
    isWhole || videoVariantName !== undefined ? one('video', videoVariantName, videoIndex) : [[], false];
  const [audio, noAudio] =
    isWhole || audioVariantName !== undefined ? one('audio', audioVariantName, audioIndex) : [[], false];
  const none = video.length + audio.length === 0;
  return { tracks: [...video, ...audio], missing: (none ? 4 : 0) + (noVideo ? 2 : 0) + (noAudio ? 1 : 0) };
}

function ofEachKind(tracks: readonly MediaTrack[]): MediaTrack[] {
  const of = (type: MediaTrack['type']): MediaTrack[] => tracks.filter((track) => track.type === type);
  return [...of('video').slice(0, MAX_TRACKS), ...of('audio').slice(0, MAX_TRACKS)];
}

function isTaken({ codec, config }: MediaTrack, { fourCcs }: PlayerAbility): boolean {
  if (config === undefined && !WITHOUT_CONFIG.has(codec)) return false;
  const fourCc = fourCcOf(codec);
  return CLASSIC.has(codec) || (fourCc !== undefined && fourCcs.has(fourCc));
}
