import { controlUrl } from './control.ts';
import { DatagramPair } from './datagram-pair.ts';
import type { Described } from './describe.ts';
import type { RtspMedia } from './description.ts';
import { RtspError } from './error.ts';
import { header, type RtspResponse } from './message.ts';
import { checkMoved, RtspAgain } from './redirect.ts';
import { DEFAULT_TIMEOUT_SECONDS, readSession } from './session-field.ts';
import { datagrams, interleaved, parseTransport } from './transport.ts';
import type { MediaTransport } from './url.ts';

/** Receives the packets of tracks, numbered by their place among those that are set up. */
export interface MediaSink {
  rtp(track: number, data: Buffer): void;
  rtcp(track: number, data: Buffer): void;
  /** A datagram came from another address than the server's. */
  unexpectedSource(): void;
  /** Number of received bytes, all of the protocol included. */
  received(bytes: number): void;
}

/** Transport of one track. */
export interface Lane {
  readonly media: RtspMedia;
  readonly url: string;
  /** Sends an RTCP packet. */
  report(data: Buffer): void;
  close(): void;
}

/** Checks that packets may be sent to a UDP port of an address. @throws Error when not, or when the signal aborts */
export type CheckUdp = (address: string, port: number, signal: AbortSignal) => Promise<unknown>;

const OK = 200;
/** Highest number of the first channel of a pair. */
const MAX_CHANNEL = 254;
const UNSUPPORTED_TRANSPORT = 461;
const UNAUTHORIZED = 401;

/** The tracks of one session (RFC 2326 section 10.4). */
export class Setup {
  readonly lanes: Lane[] = [];
  /** Tracks that the server rejected, with the reasons. */
  readonly refused: { readonly media: RtspMedia; readonly reason: string }[] = [];
  /** Session timeout of the server. */
  timeoutSeconds = DEFAULT_TIMEOUT_SECONDS;
  readonly #described: Described;
  readonly #checkUdp: CheckUdp;
  readonly #signal: AbortSignal;
  readonly #sink: MediaSink;
  readonly #channels = new Map<number, { readonly track: number; readonly isRtcp: boolean }>();
  #transport: MediaTransport;
  #mayChange: boolean;
  #hasSession = false;

  /** @param signal ends what waits for other than the server */
  constructor(described: Described, checkUdp: CheckUdp, signal: AbortSignal, sink: MediaSink) {
    this.#described = described;
    this.#checkUdp = checkUdp;
    this.#signal = signal;
    this.#sink = sink;
    this.#transport = described.url.transport ?? 'tcp';
    this.#mayChange = described.url.transport === undefined;
  }

  get transport(): MediaTransport {
    return this.#transport;
  }

  /** The server has a session that must be torn down. */
  get hasSession(): boolean {
    return this.#hasSession;
  }

  /**
   * Sets up every track that the server allows, and leaves out the others.
   * @param wants whether a track is wanted
   * @throws Error when no track remains; RtspAgain when another transport may work
   */
  async run(wants: (media: RtspMedia) => boolean): Promise<void> {
    let refused: RtspError | undefined;
    for (const media of this.#described.description.media.filter(wants)) {
      try {
        this.lanes.push(await this.#setUp(media));
      } catch (error) {
        if (!(error instanceof RtspError) || error instanceof RtspAgain) throw error;
        if (error.status === undefined || error.status === UNAUTHORIZED) throw error;
        refused = error;
        this.refused.push({ media, reason: error.message });
      }
    }
    if (this.lanes.length > 0) return;
    if (refused === undefined) throw new RtspError('the stream has no supported track');
    throw this.#mayChange ? new RtspAgain(refused.message, refused.status, 'udp') : refused;
  }

  /** Takes a packet of the connection. */
  media(channel: number, data: Buffer): void {
    const found = this.#channels.get(channel);
    if (found !== undefined) this.#take(found.track, found.isRtcp, data);
  }

  close(): void {
    for (const lane of this.lanes) lane.close();
  }

  async #setUp(media: RtspMedia): Promise<Lane> {
    for (;;) {
      try {
        return await (this.#transport === 'tcp' ? this.#setUpTcp(media) : this.#setUpUdp(media));
      } catch (error) {
        const isOther = error instanceof RtspError && error.status === UNSUPPORTED_TRANSPORT;
        if (!isOther || error instanceof RtspAgain || !this.#mayChange || this.lanes.length > 0) throw error;
        this.#mayChange = false;
        this.#transport = 'udp';
      }
    }
  }

  async #setUpTcp(media: RtspMedia): Promise<Lane> {
    const { connection } = this.#described;
    const track = this.lanes.length;
    const wanted = this.#freeChannels(track);
    // a server may send before it answers
    for (const channel of wanted) connection.expect(channel);
    const response = await this.#ask(media, interleaved(wanted[0]));
    const field = header(response.headers, 'transport') ?? '';
    const { channels, isElsewhere } = parseTransport(field);
    if (isElsewhere) throw this.#otherTransport(field);
    // a server that assigns the channels of another track again does not mean it
    const [rtp, rtcp] = channels?.every((channel) => !this.#channels.has(channel)) ? channels : wanted;
    this.#listen(rtp, rtcp, track);
    return { media, url: this.#urlOf(media), report: (data) => connection.media(rtcp, data), close: () => {} };
  }

  /** Usual channels of a track, or, where the server gave those to another, the next after all that are in use. */
  #freeChannels(track: number): readonly [number, number] {
    const usual = 2 * track;
    if (!this.#channels.has(usual) && !this.#channels.has(usual + 1)) return [usual, usual + 1];
    const next = Math.max(...this.#channels.keys()) + 1;
    const even = next + (next % 2);
    if (even <= MAX_CHANNEL) return [even, even + 1];
    for (let channel = 0; ; channel += 2)
      if (!this.#channels.has(channel) && !this.#channels.has(channel + 1)) return [channel, channel + 1];
  }

  /** The session that the server has made is of no use. */
  #otherTransport(field: string): RtspError {
    const message = `the server chose a transport for a track that was not offered (${field.split(';')[0] ?? ''})`;
    return this.#mayChange && this.lanes.length === 0
      ? new RtspAgain(message, UNSUPPORTED_TRANSPORT, 'udp')
      : new RtspError(message, UNSUPPORTED_TRANSPORT);
  }

  async #setUpUdp(media: RtspMedia): Promise<Lane> {
    const { localAddress, remoteAddress } = this.#described.socket;
    if (localAddress === undefined || remoteAddress === undefined) throw new RtspError('the connection is gone');
    const track = this.lanes.length;
    const pair = await DatagramPair.open(localAddress, remoteAddress, {
      rtp: (data) => this.#datagram(track, false, data),
      rtcp: (data) => this.#datagram(track, true, data),
      unexpectedSource: () => this.#sink.unexpectedSource(),
    });
    try {
      const response = await this.#ask(media, datagrams(pair.port));
      const field = header(response.headers, 'transport') ?? '';
      const { isTcp, source, serverPorts } = parseTransport(field);
      if (isTcp) throw this.#otherTransport(field);
      pair.hear(source);
      if (serverPorts !== undefined && serverPorts[0] > 0) {
        for (const port of serverPorts) await this.#checkUdp(remoteAddress, port, this.#signal);
        pair.punch(serverPorts);
      }
      return { media, url: this.#urlOf(media), report: (data) => pair.report(data), close: () => pair.close() };
    } catch (error) {
      pair.close();
      throw error;
    }
  }

  #datagram(track: number, isRtcp: boolean, data: Buffer): void {
    try {
      this.#sink.received(data.length);
      this.#take(track, isRtcp, data);
    } catch (error) {
      this.#described.connection.fail(error);
    }
  }

  #take(track: number, isRtcp: boolean, data: Buffer): void {
    if (isRtcp) this.#sink.rtcp(track, data);
    else this.#sink.rtp(track, data);
  }

  #listen(rtp: number, rtcp: number, track: number): void {
    // where RTP and RTCP share a channel, each packet shows which it is
    this.#channels.set(rtcp, { track, isRtcp: true });
    this.#channels.set(rtp, { track, isRtcp: false });
    this.#described.connection.expect(rtp);
    this.#described.connection.expect(rtcp);
  }

  #urlOf({ control }: RtspMedia): string {
    return controlUrl(this.#described.base, control);
  }

  async #ask(media: RtspMedia, transport: string): Promise<RtspResponse> {
    const { connection } = this.#described;
    const response = await connection.ask('SETUP', this.#urlOf(media), { Transport: transport });
    checkMoved(response);
    const { status, reason, headers } = response;
    if (status !== OK) {
      const way = this.#transport.toUpperCase();
      throw new RtspError(`the server refused a track over ${way} (${status}): ${reason}`, status);
    }
    const session = readSession(headers);
    if (session !== undefined) {
      connection.session = session.id;
      this.timeoutSeconds = session.timeoutSeconds ?? this.timeoutSeconds;
      this.#hasSession = true;
    }
    return response;
  }
}
