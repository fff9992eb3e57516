import { ChannelPairs } from '../../protocols/rtsp/channel-pairs.ts';
import { interleave, onChannel } from '../../protocols/rtsp/interleaved.ts';
import type { RtspServerConnection } from '../../protocols/rtsp/server-connection.ts';
import type { MediaSink } from './sink.ts';

/** Above so many unsent bytes a client is slow. */
const MAX_UNSENT_BYTES = 512 * 1024;

/** Media in the connection of the requests (RFC 2326 section 10.12). */
export class InterleavedSink implements MediaSink {
  writable: () => void = () => {};
  readonly #connection: RtspServerConnection;
  readonly #channels = new ChannelPairs();

  constructor(connection: RtspServerConnection) {
    this.#connection = connection;
    connection.drained = () => this.writable();
  }

  /**
   * Gives a track a pair of channels: the wanted one where it is free.
   * @returns undefined when there are none left
   */
  add(track: number, wanted: readonly [number, number] | undefined): readonly [number, number] | undefined {
    return this.#channels.add(track, wanted);
  }

  send(track: number, frame: Buffer): boolean {
    const [channel] = this.#channels.of(track) as readonly [number, number];
    // frames are made for the channels that nearly all clients ask for
    this.#connection.write(channel === 2 * track ? frame : onChannel(frame, channel));
    return this.#connection.unsentBytes <= MAX_UNSENT_BYTES;
  }

  report(track: number, packet: Buffer): void {
    const pair = this.#channels.of(track);
    if (pair === undefined || this.#connection.unsentBytes > MAX_UNSENT_BYTES) return;
    this.#connection.write(interleave(pair[1], packet));
  }

  close(): void {
    this.writable = () => {};
  }
}
