import type { Link } from '../core/links.ts';
import type { Packet } from '../core/packet.ts';
import type { Track } from '../core/track.ts';
import { TsMuxer } from '../containers/mpegts/muxer.ts';
import { LiveTs } from '../packaging/live-ts.ts';
import type { Destination } from './destination.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

/** Transport of MPEG-TS packets to a destination. */
export interface Carrier extends Pick<Sink, 'takesBursts' | 'sentBytes' | 'link' | 'finish' | 'close'> {
  /**
   * @param packets whole transport packets
   * @returns false when the send queue is full, until `writable` is called; they are sent all the same
   */
  send(packets: Buffer): boolean;
}

/** Connects a carrier. @throws PushError */
export type OpenCarrier = (destination: Destination, options: SinkOptions) => Promise<Carrier>;

/** Makes a sink that pushes MPEG-TS over a carrier. */
export function tsSink(open: OpenCarrier): OpenSink {
  return async (destination, options) => new TsSink(await open(destination, options), options);
}

/** Multiplexes the tracks of a push as one program of MPEG-TS. */
class TsSink implements Sink {
  readonly isSingle = false;
  readonly takesBursts: boolean;
  readonly link: Link | undefined;
  readonly #carrier: Carrier;
  readonly #ts: LiveTs;
  #hasRoom = true;

  constructor(carrier: Carrier, { leftOut }: SinkOptions) {
    this.takesBursts = carrier.takesBursts;
    this.link = carrier.link;
    this.#carrier = carrier;
    const unit = (_unit: unknown, data: Buffer): void => {
      this.#hasRoom = carrier.send(data);
    };
    this.#ts = new LiveTs({ unit, leftOut });
  }

  get sentBytes(): number {
    return this.#carrier.sentBytes;
  }

  objection(track: Track): string | undefined {
    return new TsMuxer([track]).omitted[0]?.reason;
  }

  setTracks(tracks: readonly Track[]): void {
    this.#ts.setTracks(tracks);
  }

  write(packet: Packet): boolean {
    // a call of `writable` may have emptied the carrier
    this.#hasRoom = true;
    this.#ts.write(packet);
    return this.#hasRoom;
  }

  finish(): void {
    this.#ts.flush();
    this.#carrier.finish();
  }

  close(): void {
    this.#carrier.close();
  }
}
