let editions = 0;

/** Next number, unique among all streams: of two playlists of one name the later one has the greater. */
export function nextEdition(): number {
  return ++editions;
}
