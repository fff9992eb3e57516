import type { Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/stream.ts';
import type { Packet } from '../../../core/packet.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { Progress } from '../../../packaging/past.ts';
import type { Media } from '../answer/answer.ts';
import type { Chunklist } from './chunklist.ts';
import type { Follower } from '../answer/followers.ts';
import type { Queue } from './queue.ts';
import type { Start } from './start.ts';
import type { Text } from '../answer/text.ts';
import type { Waiters } from './waiters.ts';

/** A media playlist of this node. */
export interface PackagedList extends Chunklist {
  readonly waiters: Waiters;
  text(form: ChunklistForm): Text;
}

/** What a file name stands for. */
export type Resource =
  | { readonly kind: 'list'; readonly rendition: PackagedList }
  | Media
  /** The part that comes next: it is told of before it exists. */
  | { readonly kind: 'hint'; readonly rendition: PackagedList };

/** A stream in the form of files. */
export interface Package {
  /** Grows with every change. */
  readonly edition: number;
  /** The publisher has gone, and may return. */
  readonly interrupted: boolean;
  /** Its playlists have ended for good (EXT-X-ENDLIST), whether or not the stream goes on. */
  readonly concluded: boolean;
  /** Seconds. */
  readonly targetDuration: number;
  readonly progress: Progress;
  /** Who waits for its playlists. */
  readonly queue: Queue;
  /** Which of its renditions there are. */
  readonly start: Start;
  /** Tells which tracks and playlists there are. After an interruption the stream goes on behind a discontinuity. */
  update(output: OutputStream): void;
  push(packet: Packet): void;
  /** Nothing comes for now: what is there is complete, and nobody waits for long. */
  interrupt(): void;
  /**
   * Ends the playlists for good; the window stays.
   * @param urgent now; otherwise at the end of the growing segments, or of the stream
   */
  conclude(urgent: boolean): void;
  /**
   * Passes on the segments of the window, oldest first, and then each one as it is completed.
   * @returns a function that ends this
   */
  follow(follower: Follower): () => void;
  /** Completes the growing segments: nothing follows. */
  close(): void;
  /**
   * A master playlist; undefined while there is nothing to play yet.
   * @param uri of a media playlist, as players are to ask for it
   * @throws fileNotFound
   */
  master(playlist: Playlist, output: OutputStream, uri: (name: string) => string): string | undefined;
  file(name: string): Resource | undefined;
}
