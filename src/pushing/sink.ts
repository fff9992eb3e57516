import type { Packet } from '../core/packet.ts';
import type { Track } from '../core/track.ts';
import type { Destination } from './destination.ts';

/** A connection to a destination that takes media. */
export interface Sink {
  /** Packets of one video and one audio track are all it takes. */
  readonly isSingle: boolean;
  /** What came before may be sent in one go. */
  readonly takesBursts: boolean;
  /** Bytes that were sent, those of the protocol included. */
  readonly sentBytes: number;
  /** Why a track cannot be carried; undefined for one that can. */
  objection(track: Track): string | undefined;
  /** Sets or replaces the tracks whose packets follow. */
  setTracks(tracks: readonly Track[]): void;
  /**
   * @returns false when enough waits to be sent, until `writable` is called; the packet is sent all the same
   * @throws BitstreamError for a packet that cannot be carried
   */
  write(packet: Packet): boolean;
  /** Ends the connection in the order that the protocol wants, when everything was sent. */
  finish(): void;
  /** Idempotent. */
  close(): void;
}

export interface SinkOptions {
  readonly connectMs: number;
  /** How long the destination may take nothing of what is there for it. */
  readonly sendMs: number;
  /** Aborts when the connection is not wanted any more. */
  readonly signal: AbortSignal;
  /** There is room again after a `write` that answered false. */
  readonly writable: () => void;
  /** A packet that cannot be carried is left out, for this reason. */
  readonly leftOut: (reason: string) => void;
  /**
   * The destination asks for another connection, and takes media until that is made.
   * @param url relative to that of this connection; undefined for the same one
   */
  readonly moved: (url: string | undefined) => void;
  /** Called when a connection that was made is over; not after `close()` or `finish()`. */
  readonly failed: (reason: string) => void;
}

/** Connects. @throws PushError when that fails */
export type OpenSink = (destination: Destination, options: SinkOptions) => Promise<Sink>;
