import { interleave, onChannel } from '../../protocols/rtsp/interleaved.ts';
import type { RtspServerConnection } from '../../protocols/rtsp/server-connection.ts';
import type { MediaSink } from './sink.ts';

/** Above so many unsent bytes a client is slow. */
const MAX_UNSENT_BYTES = 512 * 1024;

/** Media in the connection of the requests (RFC 2326 section 10.12). */
export class InterleavedSink implements MediaSink {
  writable: () => void = () => {};
  readonly #connection: RtspServerConnection;
  /** Channels of RTP and RTCP, by track. */
  readonly #channels = new Map<number, readonly [rtp: number, rtcp: number]>();

  constructor(connection: RtspServerConnection) {
    this.#connection = connection;
    connection.drained = () => this.writable();
  }

  /**
   * Gives a track a pair of channels: the wanted one where it is free.
   * @returns undefined when there are none left
   */
  add(track: number, wanted: readonly [number, number] | undefined): readonly [number, number] | undefined {
    this.#channels.delete(track);
    const taken = new Set([...this.#channels.values()].flat());
    const isFree = (pair: readonly [number, number]): boolean => pair.every((channel) => !taken.has(channel));
    let pair = wanted ?? [2 * track, 2 * track + 1];
    for (let first = 0; !isFree(pair); first += 2) {
      if (first > 254) return undefined;
      pair = [first, first + 1];
    }
    this.#channels.set(track, pair);
    return pair;
  }

  send(track: number, frame: Buffer): boolean {
    const [channel] = this.#channels.get(track) as readonly [number, number];
    // frames are made for the channels that nearly all clients ask for
    this.#connection.write(channel === 2 * track ? frame : onChannel(frame, channel));
    return this.#connection.unsentBytes <= MAX_UNSENT_BYTES;
  }

  report(track: number, packet: Buffer): void {
    const pair = this.#channels.get(track);
    if (pair === undefined || this.#connection.unsentBytes > MAX_UNSENT_BYTES) return;
    this.#connection.write(interleave(pair[1], packet));
  }

  close(): void {
    this.writable = () => {};
  }
}
