export type MediaKind = 'video' | 'audio';

export const MAX_TRACKS = 16;
/**
 * Id of a source's track in its stream, which does not depend on other tracks and their order: even for video, odd for
 * audio, and 0 and 1 for a source with one of each.
 * @param trackId as the source numbers those of a kind, 0 for the only one
 */
export function streamTrackId(kind: MediaKind, trackId: number): number {
  return 2 * trackId + (kind === 'video' ? 0 : 1);
}

/** Number of an audio or video track among those of its kind, by its id in the stream. */
export function trackIdOf(id: number): number {
  return id >> 1;
}
