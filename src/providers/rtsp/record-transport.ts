import { randomBytes } from 'node:crypto';
import { ChannelPairs } from '../../protocols/rtsp/channel-pairs.ts';
import { interleave } from '../../protocols/rtsp/interleaved.ts';
import type { RtspServerConnection } from '../../protocols/rtsp/server-connection.ts';
import type { TransportOffer } from '../../protocols/rtsp/transport-offer.ts';
import type { MediaTransport } from '../../protocols/rtsp/url.ts';
import type { DatagramLane, Datagrams } from '../../rtsp/datagram-ports.ts';

export interface RecordTransportOptions {
  readonly connection: Pick<RtspServerConnection, 'write' | 'unsentBytes' | 'fail'>;
  /** Undefined where media is received over TCP alone. */
  readonly datagrams: Datagrams | undefined;
  /** Address of the client. */
  readonly address: string;
  /** A packet of a track, RTP or RTCP. @param bytes with what is around it */
  readonly packet: (track: number, isRtcp: boolean, data: Buffer, bytes: number) => void;
}

/** Bytes in front of a packet in the connection. */
const HEAD_BYTES = 4;
/** Reports are not sent to a client with more unread bytes. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** How the tracks of a publisher come in: all of them in the connection, or all over UDP. */
export class RecordTransport {
  /** Tracks that are set up, by their place in the description. */
  readonly tracks = new Set<number>();
  readonly #options: RecordTransportOptions;
  readonly #channels = new ChannelPairs();
  readonly #lanes = new Map<number, DatagramLane>();
  #kind: MediaTransport | undefined;
  #session: string | undefined;

  constructor(options: RecordTransportOptions) {
    this.#options = options;
  }

  /** Id of the session; undefined until a track is set up. */
  get session(): string | undefined {
    return this.#session;
  }

  /** Undefined until a track is set up. */
  get kind(): MediaTransport | undefined {
    return this.#kind;
  }

  /**
   * Sets up a track by the first offer that can be met.
   * @returns value of the answer's `Transport`; undefined where none can be met
   */
  setUp(track: number, offers: readonly TransportOffer[]): string | undefined {
    for (const offer of offers) {
      if (this.#kind !== undefined && this.#kind !== offer.kind) continue;
      const agreed = offer.kind === 'tcp' ? this.#setUpTcp(track, offer) : this.#setUpUdp(track, offer);
      if (agreed === undefined) continue;
      this.#kind = offer.kind;
      this.#session ??= randomBytes(8).toString('hex');
      this.tracks.add(track);
      return `${agreed};mode=record`;
    }
    return undefined;
  }

  /** Takes a packet of the connection; those of other channels are ignored. */
  media(channel: number, data: Buffer): void {
    const use = this.#channels.use(channel);
    if (use !== undefined) this.#options.packet(use.track, use.isRtcp, data, HEAD_BYTES + data.length);
  }

  /** Sends an RTCP packet of a track. */
  report(track: number, packet: Buffer): void {
    const { connection } = this.#options;
    const pair = this.#channels.of(track);
    if (pair === undefined) this.#lanes.get(track)?.rtcp(packet);
    else if (connection.unsentBytes <= MAX_UNSENT_BYTES) connection.write(interleave(pair[1], packet));
  }

  /** Idempotent. */
  close(): void {
    for (const lane of this.#lanes.values()) lane.close();
    this.#lanes.clear();
  }

  #setUpTcp(track: number, { profile, pair }: TransportOffer): string | undefined {
    const channels = this.#channels.add(track, pair);
    return channels && `${profile};unicast;interleaved=${channels.join('-')}`;
  }

  #setUpUdp(track: number, { profile, pair }: TransportOffer): string | undefined {
    const { datagrams, address } = this.#options;
    if (datagrams === undefined || pair === undefined) return undefined;
    this.#lanes.get(track)?.close();
    this.#lanes.delete(track);
    const received = (data: Buffer, isRtcp: boolean): void => this.#datagram(track, isRtcp, data);
    const lane = datagrams.add({ address, ports: pair, received });
    if (lane === undefined) return undefined;
    this.#lanes.set(track, lane);
    return `${profile};unicast;client_port=${pair.join('-')};server_port=${lane.ports.join('-')}`;
  }

  #datagram(track: number, isRtcp: boolean, data: Buffer): void {
    const { connection, packet } = this.#options;
    try {
      packet(track, isRtcp, data, data.length);
    } catch (error) {
      connection.fail(error);
    }
  }
}
