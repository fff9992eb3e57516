import type { Socket } from 'node:net';
import { TcpSender } from '../outbound/tcp-sender.ts';
import { unauthorized } from './authorization.ts';
import { RtspConnection } from './connection.ts';
import { controlUrl } from './control.ts';
import { methodsOf, type Dial } from './describe.ts';
import { RtspError } from './error.ts';
import { KeepAlive } from './keep-alive.ts';
import { header, type RtspResponse } from './message.ts';
import { checkMoved, type RtspTarget } from './redirect.ts';
import { trackPath } from './request-url.ts';
import { DEFAULT_TIMEOUT_SECONDS, readSession } from './session-field.ts';
import { interleaved, parseTransport } from './transport.ts';

export interface PublishingOptions {
  readonly dial: Dial;
  /** Longest time in which the server accepts none of what waits, in milliseconds. */
  readonly sendMs: number;
  /** Called when there is room again after a `send` that returned false. */
  readonly writable: () => void;
  /** Called once when the connection ends, not after `finish` or `close`. */
  readonly ended: (reason: string) => void;
}

const OK = 200;
const UNAUTHORIZED = 401;

/** Publishes one stream to an RTSP server, by ANNOUNCE and RECORD (RFC 2326 sections 10.3 and 10.11), in its TCP connection. */
export class RtspPublishingClient {
  readonly #target: RtspTarget;
  readonly #options: PublishingOptions;
  #connection: RtspConnection;
  #sender: TcpSender;
  #methods: ReadonlySet<string>;
  #hasSession = false;
  #closed = false;
  #keepAlive: KeepAlive | undefined;

  /** Connects to the server. @throws RtspError, errors of `dial` */
  static async connect(target: RtspTarget, options: PublishingOptions): Promise<RtspPublishingClient> {
    for (;;) {
      try {
        return new RtspPublishingClient(target, options, await open(target, options));
      } catch (error) {
        target.follow(error);
      }
    }
  }

  private constructor(target: RtspTarget, options: PublishingOptions, { connection, sender, methods }: Opened) {
    this.#target = target;
    this.#options = options;
    this.#connection = connection;
    this.#sender = sender;
    this.#methods = methods;
  }

  /** Bytes sent, those of the protocol included. */
  get sentBytes(): number {
    return this.#sender.sentBytes;
  }

  /** Address of this side. */
  get address(): string | undefined {
    return this.#connection.localAddress;
  }

  /**
   * Announces a stream and begins to record it; media of track n is then sent on channel 2n.
   * @param description SDP whose tracks have `trackPath` as their control
   * @throws RtspError when the server refuses, errors of `dial`
   */
  async record(description: string, tracks: number): Promise<void> {
    for (;;) {
      try {
        return await this.#record(description, tracks);
      } catch (error) {
        this.#target.follow(error);
        this.#leave();
        const { connection, sender, methods } = await open(this.#target, this.#options);
        [this.#connection, this.#sender, this.#methods] = [connection, sender, methods];
        if (!this.#closed) continue;
        this.close();
        throw new RtspError('the connection is gone');
      }
    }
  }

  /** Sends interleaved packets. @returns false when there is no room for more, until `writable` is called */
  send(frame: Buffer): boolean {
    return this.#sender.send([frame]);
  }

  /** Ends the stream once everything is sent. */
  finish(): void {
    this.#closed = true;
    this.#leave();
  }

  /** Closes the connection. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#leave();
    this.#sender.close();
  }

  async #record(description: string, tracks: number): Promise<void> {
    const connection = this.#connection;
    const { href } = this.#target.url;
    await this.#ask('ANNOUNCE', href, { 'Content-Type': 'application/sdp' }, description);
    let timeout = DEFAULT_TIMEOUT_SECONDS;
    for (let track = 0; track < tracks; track++) {
      const channel = 2 * track;
      const transport = `${interleaved(channel)};mode=record`;
      const response = await this.#ask('SETUP', controlUrl(href, trackPath(track)), { Transport: transport });
      const { isElsewhere, channels } = parseTransport(header(response.headers, 'transport') ?? '');
      if (isElsewhere || (channels !== undefined && channels[0] !== channel))
        throw new RtspError('the server chose a transport for a track that was not offered');
      const session = readSession(response.headers);
      if (session !== undefined) {
        connection.session = session.id;
        this.#hasSession = true;
        timeout = session.timeoutSeconds ?? timeout;
      }
      // what it reports on the media
      connection.expect(channel);
      connection.expect(channel + 1);
    }
    await this.#ask('RECORD', href, { Range: 'npt=0.000-' });
    if (connection.ended !== undefined) throw new RtspError(connection.ended);
    let fault: unknown;
    connection.sink = {
      media: () => {},
      received: () => {},
      garbage: () => {},
      fault: (error) => (fault = error),
      end: (reason) => {
        this.close();
        this.#options.ended(fault === undefined ? reason : `internal error: ${(fault as Error).message}`);
      },
    };
    this.#keepAlive = new KeepAlive(connection, href, this.#methods, timeout);
  }

  /** @throws RtspError for any answer but 200 */
  async #ask(...request: Parameters<RtspConnection['ask']>): Promise<RtspResponse> {
    const [method] = request;
    const response = await this.#connection.ask(...request);
    checkMoved(response);
    const { status, reason } = response;
    if (status === UNAUTHORIZED) throw new RtspError(unauthorized(this.#target.authorization), status);
    if (status !== OK) throw new RtspError(`the server refused ${method} (${status}): ${reason}`, status);
    return response;
  }

  #leave(): void {
    this.#keepAlive?.close();
    const connection = this.#connection;
    connection.sink = undefined;
    if (this.#hasSession) connection.tell('TEARDOWN', this.#target.url.href);
    this.#hasSession = false;
    connection.close();
  }
}

interface Opened {
  readonly connection: RtspConnection;
  readonly sender: TcpSender;
  readonly methods: ReadonlySet<string>;
}

/** @throws RtspError, errors of `dial` */
async function open({ url, authorization }: RtspTarget, options: PublishingOptions): Promise<Opened> {
  const socket: Socket = await options.dial(url.host, url.port);
  const sender = new TcpSender(socket, options.sendMs, {
    writable: options.writable,
    failed: (reason) => connection.end(reason),
  });
  const connection = new RtspConnection(socket, authorization, sender);
  try {
    return { connection, sender, methods: methodsOf(await connection.ask('OPTIONS', url.href)) };
  } catch (error) {
    connection.close();
    throw error;
  }
}
