let editions = 0;

/** Numbers of all streams together, so that of two playlists of one name the later one has the greater. */
export function nextEdition(): number {
  return ++editions;
}
