import type { Playlist, Rendition as Wanted } from '../../../core/playlist.ts';
import type { MediaTrack, Track } from '../../../core/track.ts';

/** What is chosen from: one for each track. */
export interface Choosable {
  readonly track: MediaTrack;
}

/** One choice of a player: a picture, with any of the sounds; without a picture, the sounds alone. */
export interface Variant<R extends Choosable> {
  readonly video: R | undefined;
  /** One sound in its languages; the first is played unless the viewer chooses. */
  readonly audios: readonly R[];
}

/**
 * The variants of a playlist, each once. A rendition that names a track that is not there is left out; if that
 * leaves none, what is there of each plays, a picture before sound alone.
 */
export function variants<R extends Choosable>(playlist: Playlist, renditions: readonly R[]): Variant<R>[] {
  const named = (type: 'video' | 'audio', name: string | undefined, index: number | undefined) => {
    const variant = renditions.filter(({ track }) => track.type === type && track.name === name);
    return index === undefined ? variant : variant.slice(index, index + 1);
  };
  const found = playlist.renditions.map((wanted) => ({
    wanted,
    videos: named('video', wanted.videoVariantName, wanted.videoIndex),
    audios: named('audio', wanted.audioVariantName, wanted.audioIndex),
  }));
  const whole = found.filter(({ wanted, videos, audios }) => isWhole(wanted, videos, audios));
  const seen = found.filter(({ videos }) => videos.length > 0);
  const chosen = whole.length > 0 ? whole : seen.length > 0 ? seen : found.filter(({ audios }) => audios.length > 0);
  const all = chosen.flatMap(({ videos, audios }): Variant<R>[] =>
    videos.length === 0 ? [{ video: undefined, audios }] : videos.map((video) => ({ video, audios })),
  );
  return all.filter((one, at) => all.findIndex((other) => isSame(one, other)) === at);
}

/** Every rendition that variants are made of, once. */
export function renditionsOf<R extends Choosable>(all: readonly Variant<R>[]): R[] {
  return [...new Set(all.flatMap(({ video, audios }) => (video === undefined ? audios : [video, ...audios])))];
}

/** The tracks that some playlist names. */
export function namedTracks(tracks: readonly Track[], playlists: readonly Playlist[]): Track[] {
  const names = new Set(
    playlists.flatMap(({ renditions }) =>
      renditions.flatMap(({ videoVariantName, audioVariantName }) => [videoVariantName, audioVariantName]),
    ),
  );
  return tracks.filter(({ name }) => names.has(name));
}

function isWhole(wanted: Wanted, videos: readonly Choosable[], audios: readonly Choosable[]): boolean {
  const complete = (name: string | undefined, there: readonly Choosable[]) => name === undefined || there.length > 0;
  if (videos.length + audios.length === 0) return false;
  return complete(wanted.videoVariantName, videos) && complete(wanted.audioVariantName, audios);
}

function isSame<R extends Choosable>(one: Variant<R>, other: Variant<R>): boolean {
  return one.video === other.video && one.audios[0] === other.audios[0];
}
