export type MediaKind = 'video' | 'audio';

/** Tracks of one kind that are taken of a source. */
export const MAX_TRACKS = 16;
/**
 * Id that a source's track has in its stream, the same whatever else comes or goes and in whichever order:
 * 0 and 1 for the picture and the sound of a source that knows no more, even numbers for further pictures, odd
 * ones for further sound.
 * @param trackId as the source numbers those of a kind, 0 for the only one
 */
export function streamTrackId(kind: MediaKind, trackId: number): number {
  return 2 * trackId + (kind === 'video' ? 0 : 1);
}

/** How the source numbers a track among those of its kind, by the id of an audio or video track in its stream. */
export function trackIdOf(id: number): number {
  return id >> 1;
}
