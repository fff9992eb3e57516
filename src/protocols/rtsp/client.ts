/**
 * Takes one stream of an RTSP server.
 *
 *     const client = await RtspClient.connect('rtsp://host/stream', { dial, checkUdp });   // connected, and described
 *     await client.play(sink);                                                            // `sink` is called from here on
 *     client.close();                                                                     // nothing is called any more
 *
 * Both steps throw, RtspError or what the options throw, and leave nothing open. Media comes in the connection of the
 * requests; where the server refuses that, or the URL asks for it, in UDP packets.
 */
import type { Socket } from 'node:net';
import type { ConnectionSink } from './connection.ts';
import { controlUrl } from './control.ts';
import { describe, type Described, type Dial } from './describe.ts';
import type { RtspMedia } from './description.ts';
import { RtspError } from './error.ts';
import { KeepAlive } from './keep-alive.ts';
import { header, type RtspResponse } from './message.ts';
import { playRanges } from './range.ts';
import { checkMoved, RtspTarget } from './redirect.ts';
import { parseRtpInfo, startsOf } from './rtp-info.ts';
import { Setup, type CheckUdp, type MediaSink } from './setup.ts';
import type { MediaTransport } from './url.ts';

/** Receives a stream; tracks are numbered by their place in `media`. */
export interface RtspSink extends MediaSink, Pick<ConnectionSink, 'garbage' | 'fault' | 'end'> {
  /** Before any packet, and anew where the server redirects its clients. @throws Error: then it is not played */
  begin(media: readonly RtspMedia[], transport: MediaTransport): void;
  /** A track is left out: the server rejected it, or, without a reason, its codec is not supported. */
  ignored(encoding: string, reason: string | undefined): void;
  /** RTP time of a track at the instant where all tracks begin, as the server gives it. Packets may have come before. */
  start(track: number, rtpTime: number): void;
}

export interface RtspClientOptions {
  /** Which of the described tracks are wanted. */
  readonly wants: (media: RtspMedia) => boolean;
  readonly dial: Dial;
  readonly checkUdp: CheckUdp;
  /** Ends `connect`. */
  readonly signal: AbortSignal;
}

const OK = 200;
const GONE = 'the connection is gone';
/** Statuses of servers that may play with another `Range`, or with none. */
const NOT_SO = new Set([400, 451, 456, 457, 500, 501]);

/** See the top of the file. */
export class RtspClient {
  readonly #target: RtspTarget;
  readonly #options: RtspClientOptions;
  #described: Described;
  #setup: Setup | undefined;
  #keepAlive: KeepAlive | undefined;
  /** Aborts by `close()`, for what `play` opens. */
  readonly #stop = new AbortController();

  /** @throws Error */
  static async connect(target: string, options: RtspClientOptions): Promise<RtspClient> {
    const asked = new RtspTarget(target);
    return new RtspClient(asked, await describe(asked, options.dial, options.signal), options);
  }

  private constructor(target: RtspTarget, described: Described, options: RtspClientOptions) {
    this.#target = target;
    this.#described = described;
    this.#options = options;
  }

  get socket(): Socket {
    return this.#described.socket;
  }

  /** Undefined before the stream plays. */
  get transport(): MediaTransport | undefined {
    return this.#setup?.transport;
  }

  /** Plays the stream. @throws Error; the client is then closed */
  async play(sink: RtspSink): Promise<void> {
    try {
      while (!(await this.#plays(sink))) await this.#describeAgain();
    } catch (error) {
      this.close();
      // what was opened while it was closed
      this.#setup?.close();
      throw error;
    }
  }

  /** Sends an RTCP packet of a track. */
  report(track: number, data: Buffer): void {
    this.#setup?.lanes[track]?.report(data);
  }

  /** Ends the stream. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#stop.abort();
    this.#keepAlive?.close();
    this.#leave();
  }

  get #closed(): boolean {
    return this.#stop.signal.aborted;
  }

  get #aggregate(): string {
    const { base, description } = this.#described;
    return controlUrl(base, description.control);
  }

  #leave(): void {
    const { connection } = this.#described;
    connection.sink = undefined;
    if (this.#setup?.hasSession === true) connection.tell('TEARDOWN', this.#aggregate);
    this.#setup?.close();
    connection.close();
  }

  /** @returns the answer to the first `Range` that is not rejected, or to the last */
  async #askToPlay(): Promise<RtspResponse> {
    const { connection, description } = this.#described;
    const [first, ...others] = playRanges(description.range);
    let response = await connection.ask('PLAY', this.#aggregate, { Range: first });
    for (const range of others) {
      if (!NOT_SO.has(response.status)) break;
      response = await connection.ask('PLAY', this.#aggregate, { Range: range });
    }
    return response;
  }

  /** @returns false when the request must be repeated elsewhere, or over another connection */
  async #plays(sink: RtspSink): Promise<boolean> {
    try {
      await this.#play(sink);
      return true;
    } catch (error) {
      this.#target.follow(error);
      return false;
    }
  }

  async #describeAgain(): Promise<void> {
    if (this.#closed) throw new RtspError(GONE);
    this.#leave();
    this.#setup = undefined;
    const described = await describe(this.#target, this.#options.dial, this.#stop.signal);
    this.#described = described;
    if (!this.#closed) return;
    described.connection.close();
    throw new RtspError(GONE);
  }

  async #play(sink: RtspSink): Promise<void> {
    const { connection, methods } = this.#described;
    let began = false;
    let plays = false;
    const setup = new Setup(this.#described, this.#options.checkUdp, this.#stop.signal, {
      rtp: (track, data) => began && !this.#closed && sink.rtp(track, data),
      rtcp: (track, data) => began && !this.#closed && sink.rtcp(track, data),
      received: (bytes) => !this.#closed && sink.received(bytes),
      unexpectedSource: () => sink.unexpectedSource(),
    });
    this.#setup = setup;
    connection.sink = {
      media: (channel, data) => setup.media(channel, data),
      received: (bytes) => sink.received(bytes),
      garbage: (bytes) => sink.garbage(bytes),
      fault: (error) => sink.fault(error),
      end: (reason) => {
        // until it plays, the next request fails
        if (!plays) return;
        this.close();
        sink.end(reason);
      },
    };
    await setup.run(this.#options.wants);
    if (this.#closed) throw new RtspError(GONE);
    sink.begin(
      setup.lanes.map(({ media }) => media),
      setup.transport,
    );
    began = true;
    for (const encoding of this.#described.description.ignored) sink.ignored(encoding, undefined);
    for (const { media, reason } of setup.refused) sink.ignored(media.format.encoding, reason);
    const response = await this.#askToPlay();
    checkMoved(response);
    const { status, reason, headers } = response;
    if (status !== OK) throw new RtspError(`the server refused to play (${status}): ${reason}`, status);
    // data after the answer may have ended the connection
    if (connection.ended !== undefined) throw new RtspError(connection.ended);
    plays = true;
    const starts = startsOf(
      setup.lanes.map(({ url }) => url),
      parseRtpInfo(header(headers, 'rtp-info') ?? ''),
    );
    starts.forEach((rtpTime, track) => rtpTime !== undefined && sink.start(track, rtpTime));
    this.#keepAlive = new KeepAlive(connection, this.#aggregate, methods, setup.timeoutSeconds);
  }
}
