import { randomBytes } from 'node:crypto';
import type { RtspServerConnection } from '../../protocols/rtsp/server-connection.ts';
import type { TransportOffer } from '../../protocols/rtsp/transport-offer.ts';
import type { Datagrams } from '../../rtsp/datagram-ports.ts';
import { DatagramSink } from './datagram-sink.ts';
import { InterleavedSink } from './interleaved-sink.ts';
import type { MediaSink } from './sink.ts';

export interface TransportContext {
  readonly connection: RtspServerConnection;
  /** Undefined where media is sent over TCP alone. */
  readonly datagrams: Datagrams | undefined;
  /** Address of the client. */
  readonly address: string;
  /** A packet came from a UDP port of the client. */
  readonly heard: () => void;
}

/** Transport of the tracks of one session: of all of them the same, in the connection or over UDP. */
export class TrackTransport {
  /** Indexes of the tracks that are set up. */
  readonly tracks = new Set<number>();
  readonly #context: TransportContext;
  #session: string | undefined;
  #tcp: InterleavedSink | undefined;
  #udp: DatagramSink | undefined;

  constructor(context: TransportContext) {
    this.#context = context;
  }

  /** Id of the session; undefined until a track is set up. */
  get session(): string | undefined {
    return this.#session;
  }

  get sink(): MediaSink | undefined {
    return this.#tcp ?? this.#udp;
  }

  get kind(): TransportOffer['kind'] | undefined {
    if (this.#tcp !== undefined) return 'tcp';
    return this.#udp === undefined ? undefined : 'udp';
  }

  /**
   * Sets up a track by the first offer that can be met.
   * @returns value of the answer's `Transport`; undefined where none can be met
   */
  setUp(track: number, offers: readonly TransportOffer[]): string | undefined {
    for (const offer of offers) {
      const agreed = offer.isRecord
        ? undefined
        : offer.kind === 'tcp'
          ? this.#setUpTcp(track, offer)
          : this.#setUpUdp(track, offer);
      if (agreed === undefined) continue;
      this.#session ??= randomBytes(8).toString('hex');
      this.tracks.add(track);
      return agreed;
    }
    return undefined;
  }

  /** Idempotent. */
  close(): void {
    this.#tcp?.close();
    this.#udp?.close();
  }

  #setUpTcp(track: number, { profile, pair }: TransportOffer): string | undefined {
    if (this.#udp !== undefined) return undefined;
    this.#tcp ??= new InterleavedSink(this.#context.connection);
    const channels = this.#tcp.add(track, pair);
    return channels && `${profile};unicast;interleaved=${channels.join('-')}`;
  }

  #setUpUdp(track: number, { profile, pair }: TransportOffer): string | undefined {
    const { datagrams, address, heard } = this.#context;
    if (this.#tcp !== undefined || datagrams === undefined || pair === undefined) return undefined;
    this.#udp ??= new DatagramSink();
    this.#udp.remove(track);
    const lane = datagrams.add({ address, ports: pair, received: heard });
    if (lane === undefined) return undefined;
    this.#udp.add(track, lane);
    return `${profile};unicast;client_port=${pair.join('-')};server_port=${lane.ports.join('-')}`;
  }
}
