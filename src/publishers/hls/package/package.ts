import type { Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Packet } from '../../../core/packet.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { PlaylistPosition } from '../../../packaging/playlist-position.ts';
import type { Media } from '../answer/played-stream.ts';
import type { Chunklist } from '../blocking-reload/chunklist.ts';
import type { Follower } from '../answer/segment-followers.ts';
import type { Queue } from '../blocking-reload/queue.ts';
import type { Readiness } from './readiness.ts';
import type { Text } from '../answer/text.ts';
import type { Waiters } from '../blocking-reload/waiters.ts';

export interface PackagedList extends Chunklist {
  readonly waiters: Waiters;
  text(form: ChunklistForm, rewinds: boolean): Text;
}

export type Resource =
  | { readonly kind: 'list'; readonly rendition: PackagedList }
  | Media
  /** The next part, which a preload hint announces. */
  | { readonly kind: 'hint'; readonly rendition: PackagedList };

/** A stream packaged as playlists and media files. */
export interface Package {
  /** Grows with every change, by `nextEdition`. */
  readonly edition: number;
  /** The publisher has left, and may return. */
  readonly interrupted: boolean;
  /** The playlists have ended (EXT-X-ENDLIST), whether or not the stream continues. */
  readonly concluded: boolean;
  /** Seconds. */
  readonly targetDuration: number;
  readonly progress: PlaylistPosition;
  /** Media sequence number of the first segment of which no playlist has named a part. */
  readonly unannounced: number;
  readonly queue: Queue;
  readonly readiness: Readiness;
  /** Sets tracks and playlists. Continues after a discontinuity if the stream was interrupted. */
  update(output: OutputStream): void;
  push(packet: Packet): void;
  /** Completes the growing segments and shortens the waits: the publisher has left, and may return. */
  interrupt(): void;
  /**
   * Ends the playlists; the window stays.
   * @param urgent now; otherwise at the end of the growing segments, or of the stream
   */
  conclude(urgent: boolean): void;
  /** Passes on the segments of the window, oldest first, and then each one as it is completed. */
  follow(follower: Follower): () => void;
  /** Completes the growing segments at the end of the stream. */
  close(): void;
  /**
   * Builds a master playlist; undefined while there is nothing to play yet.
   * @param uri makes the URI of a media playlist from its file name
   * @throws fileNotFound
   */
  master(playlist: Playlist, output: OutputStream, uri: (name: string) => string): string | undefined;
  file(name: string): Resource | undefined;
}

let editions = 0;

/** Next edition, unique among all packages: of two playlists of one name the later one has the greater. */
export function nextEdition(): number {
  return ++editions;
}
