/** The URL that a URI in a playlist means; a path, with its query, where the playlist is given by one. @param playlist URL or path of that */
export function inPlace(uri: string, playlist: string): string {
  const { href, origin } = new URL(uri, new URL(playlist, 'http://localhost'));
  return playlist.startsWith('/') ? href.slice(origin.length) : href;
}

/** Everything that a playlist names, in order, as `inPlace`. */
export function urisOf(text: string, playlist: string): string[] {
  const uris = text.matchAll(/URI="([^"]+)"|^([^#\n].*)$/gm);
  return [...uris].map(([, quoted, line = '']) => inPlace(quoted ?? line, playlist));
}
