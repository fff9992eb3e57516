/**
 * Receives one stream of an OVT origin.
 *
 *     const client = await OvtClient.connect('ovt://host:9000/app/stream', { log });   // connected, and described
 *     await client.play(sink);                                                        // playing: `sink` is called from here on
 *     client.close();                                                                 // nothing is called any more
 *
 * `connect` also accepts `{ stream, target }`, for an open connection. Both steps throw OvtError, with
 * the origin's `code` where it answered, and leave nothing open. `sink.tracks` comes before the first packet and
 * after each change; packets are in canonical form, on times that begin near 0 or continue by `clock`; `sink.end` comes
 * once, when the origin, the connection or a fault ends it.
 */
import type { Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import type { Duplex } from 'node:stream';
import { Watchdog } from '../../lib/watchdog.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { toDescription, type WireDescription } from '../../protocols/ovt/description.ts';
import { OvtError, OvtSilenceError } from '../../protocols/ovt/error.ts';
import {
  GONE,
  readMessage,
  toResponse,
  TRACK_CHANGED,
  writeMessage,
  type Position,
  type Request,
  type Response,
} from '../../protocols/ovt/message.ts';
import { PAYLOAD } from '../../protocols/ovt/packet.ts';
import { Receiver } from '../../protocols/ovt/receiver.ts';
import { parseOvtUrl } from '../../protocols/ovt/url.ts';
import { withReusedReads } from '../../protocols/reused-reads.ts';
import { Intake, type IntakeClock, type IntakeOptions, type IntakeSink } from './intake.ts';
import { LocalClock } from '../intake/local-clock.ts';

/** Receiver of a stream. Calls are not awaited, so they must be short. */
export interface OvtSink extends IntakeSink {
  /**
   * Called when the origin begins to send. An error that it throws ends the connection.
   * @param complete nothing is missing since an earlier connection
   * @throws OvtError when the stream is no longer wanted
   */
  begin?(complete: boolean): void;
  /** Counts received bytes, protocol overhead included. */
  received?(bytes: number): void;
  lost?(packets: number): void;
  /**
   * Called once nothing follows, but not after `close()`.
   * @param forGood the origin says that nothing continues the stream
   */
  end(reason: string, forGood: boolean): void;
}

export interface OvtClientOptions {
  readonly log: Logger;
  /** Continues the times of an earlier connection. */
  readonly clock?: IntakeClock;
  /** Whether the origin is a node of this cluster: its frames are in canonical form. */
  readonly plain?: boolean;
  /** Run and tracks of an earlier connection. */
  readonly before?: IntakeOptions['before'];
  /** Last position of an earlier connection, after which this one continues. */
  readonly after?: Position;
  /** Silence after which the stream ends; by default it ends only with its connection. */
  readonly silenceMs?: number;
}

/** Open connection, and the URL of the stream on it. */
export interface OvtConnection {
  readonly stream: Duplex;
  readonly target: string;
}

const CONNECT_TIMEOUT_MS = 1500;
const ANSWER_TIMEOUT_MS = 1500;
const LIMITS = { messageBytes: 4 * 1024 * 1024, frameBytes: 8 * 1024 * 1024 };

interface Pending {
  readonly id: number;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: OvtError) => void;
}

export class OvtClient {
  readonly #stream: Duplex;
  readonly #target: string;
  readonly #options: OvtClientOptions;
  readonly #faults: FaultLog;
  readonly #receiver: Receiver;
  #pending: Pending | undefined;
  #lastId = 0;
  #description: WireDescription | undefined;
  #sink: OvtSink | undefined;
  #intake: Intake | undefined;
  #silence: Watchdog | undefined;
  #closed = false;

  /** @throws OvtError */
  static async connect(to: string | OvtConnection, options: OvtClientOptions): Promise<OvtClient> {
    const { stream, target } = typeof to === 'string' ? { stream: await dial(to), target: to } : to;
    const client = new OvtClient(stream, target, options);
    const { contents } = await client.#ask('describe');
    try {
      client.#description = toDescription(contents);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  private constructor(stream: Duplex, target: string, options: OvtClientOptions) {
    this.#stream = withReusedReads(stream, (bytes) => this.#receive(bytes));
    this.#target = target;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    this.#receiver = new Receiver(LIMITS, {
      message: (text) => this.#onMessage(text),
      frame: (frame) => {
        if (this.#closed) return;
        if (this.#intake === undefined) throw new OvtError('the origin sent media before it was requested');
        this.#intake.frame(frame);
      },
      loss: () => {
        this.#sink?.lost?.(1);
        this.#faults.count('packets from the origin were lost');
        this.#intake?.lose();
      },
    });
    this.#stream.on('error', (error) => this.#end(`connection lost: ${error.message}`));
    this.#stream.on('end', () => this.#end('the origin closed the connection'));
    this.#stream.on('close', () => this.#end('the connection was lost'));
  }

  /** @throws OvtError when the origin refuses, does not answer in time, or has no supported track */
  async play(sink: OvtSink): Promise<void> {
    const { clock = new LocalClock(), plain = false, before, after, silenceMs } = this.#options;
    if (this.#closed || this.#description === undefined) throw new OvtError('the connection was lost');
    const options = { clock, faults: this.#faults, plain, ...(before && { before }) };
    try {
      this.#intake = new Intake(this.#description, sink, options);
    } catch (error) {
      this.close();
      throw error;
    }
    this.#sink = sink;
    await this.#ask('play', after);
    if (silenceMs === undefined || this.#closed) return;
    this.#silence = new Watchdog(silenceMs, () => this.#end(`no data for ${silenceMs} ms`)).unref();
  }

  close(): void {
    this.#sink = undefined;
    this.#end('closed');
  }

  /** @throws OvtError, and then it is closed */
  #ask(application: 'describe' | 'play', after?: Position): Promise<Response> {
    return new Promise<Response>((resolve, reject) => {
      if (this.#closed) return reject(new OvtError('the connection was lost'));
      const id = ++this.#lastId;
      const late = new Watchdog(ANSWER_TIMEOUT_MS, () =>
        this.#endBy(new OvtSilenceError(`no answer to ${application} in time`)),
      );
      this.#pending = {
        id,
        resolve: (response) => {
          late.close();
          resolve(response);
        },
        reject: (error) => {
          late.close();
          reject(error);
        },
      };
      const request: Request = { id, application, target: this.#target, ...(after && { after }) };
      this.#stream.write(writeMessage(PAYLOAD.request, request, Date.now()));
    });
  }

  #receive(bytes: Buffer): void {
    if (this.#closed) return;
    this.#silence?.heard();
    this.#sink?.received?.(bytes.length);
    try {
      this.#receiver.push(bytes);
    } catch (error) {
      if (!(error instanceof OvtError)) this.#options.log.error({ err: error }, 'receiving a stream over OVT failed');
      const reason = error instanceof OvtError ? error.message : 'internal error';
      this.#end(this.#description === undefined ? `the server is not an OVT origin: ${reason}` : reason);
    }
  }

  #onMessage(text: Buffer): void {
    if (this.#closed) return;
    const response = toResponse(readMessage(text));
    const { id, application, code, message = '' } = response;
    if (application === 'stop')
      return this.#end(`the origin ended the stream${message === '' ? '' : `: ${message}`}`, code);
    if (application === 'notify') {
      if (message === TRACK_CHANGED) this.#intake?.describe(toDescription(response.contents));
      return;
    }
    const pending = this.#pending;
    if (pending?.id !== id) return;
    if (code !== 200) return this.#end(`the origin refused (${code}): ${message}`, code);
    // media may follow in the same bytes
    this.#sink?.begin?.(response.complete === true);
    this.#intake?.begin();
    this.#pending = undefined;
    pending.resolve(response);
  }

  #end(reason: string, code?: number): void {
    this.#endBy(new OvtError(reason, code));
  }

  #endBy(error: OvtError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#silence?.close();
    this.#faults.close();
    this.#stream.destroy();
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending !== undefined) pending.reject(error);
    else this.#sink?.end(error.message, error.code === GONE);
  }
}

function dial(href: string): Promise<Socket> {
  const url = parseOvtUrl(href);
  if (url === undefined) return Promise.reject(new OvtError(`not an OVT URL: ${href.slice(0, 200)}`));
  const { host, port } = url;
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host, port, noDelay: true });
    const fail = (reason: string): void => {
      late.close();
      socket.destroy();
      reject(new OvtError(`${host}:${port} cannot be reached: ${reason}`));
    };
    const late = new Watchdog(CONNECT_TIMEOUT_MS, () => fail('no connection in time'));
    const onError = (error: Error): void => fail(error.message);
    socket.on('error', onError);
    socket.once('connect', () => {
      late.close();
      socket.off('error', onError);
      resolve(socket);
    });
  });
}
