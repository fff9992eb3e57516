import type { Link } from '../core/links.ts';
import type { Packet } from '../core/packet.ts';
import type { Track } from '../core/track.ts';
import type { Destination } from './destination.ts';

/** A connection to a destination that takes media. */
export interface Sink {
  /** Whether it takes at most one video and one audio track. */
  readonly isSingle: boolean;
  /** Whether earlier packets may be sent at once. */
  readonly takesBursts: boolean;
  /** Bytes sent, including those of the protocol. */
  readonly sentBytes: number;
  /** Absent where its transport does not tell how it fares. */
  readonly link?: Link | undefined;
  /** Reason why a track cannot be carried; undefined for one that can. */
  objection(track: Track): string | undefined;
  /**
   * Sets or replaces the tracks whose packets follow.
   * @returns where the destination is asked: resolves when it takes them, rejects with PushError
   */
  setTracks(tracks: readonly Track[]): Promise<void> | void;
  /**
   * @returns false when the send queue is full, until `writable` is called; the packet is sent all the same
   * @throws BitstreamError for a packet that cannot be carried
   */
  write(packet: Packet): boolean;
  /** Ends the connection as the protocol requires, after everything was sent. */
  finish(): void;
  close(): void;
}

export interface SinkOptions {
  readonly connectMs: number;
  /** Limit for a destination that accepts none of the waiting data. */
  readonly sendMs: number;
  /** Aborts when the connection is no longer wanted. */
  readonly signal: AbortSignal;
  /** Called when there is room again after a `write` that returned false. */
  readonly writable: () => void;
  /** Called with the reason when a packet cannot be carried and is dropped. */
  readonly leftOut: (reason: string) => void;
  /**
   * Called when the destination asks for another connection; it accepts media until that is made.
   * @param url relative to that of this connection; undefined for the same one
   */
  readonly moved: (url: string | undefined) => void;
  /** Called when an established connection ends, except after `close()` or `finish()`. */
  readonly failed: (reason: string) => void;
}

/** Connects. @throws PushError when that fails */
export type OpenSink = (destination: Destination, options: SinkOptions) => Promise<Sink>;
