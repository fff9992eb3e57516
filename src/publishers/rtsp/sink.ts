/** How the packets of one player go to its client. */
export interface MediaSink {
  /** Sends the interleaved packets of a frame. @returns false when nothing more is to be sent until `writable` is called */
  send(track: number, frame: Buffer): boolean;
  /** Sends an RTCP packet of a track; not of a client that is slow. */
  report(track: number, packet: Buffer): void;
  /** Called after `send` has returned false. */
  writable: () => void;
  /** Calls `writable` no more. Idempotent. */
  close(): void;
}
