import type { Socket } from 'node:net';
import { Watchdog } from '../../lib/watchdog.ts';
import type { TcpSender } from '../outbound/tcp-sender.ts';
import { unauthorized, type Authorization } from './authorization.ts';
import { RtspError } from './error.ts';
import { header, writeRequest, writeResponse, type Fields, type RtspRequest, type RtspResponse } from './message.ts';
import { RtspReader } from './reader.ts';
import { RtspAgain } from './redirect.ts';

/** Receives everything but the answers. */
export interface ConnectionSink {
  media(channel: number, data: Buffer): void;
  /** Number of received bytes, all of the protocol included. */
  received(bytes: number): void;
  /** Number of bytes that belong to no message or packet. */
  garbage(bytes: number): void;
  /** An error that is not the server's fault; `end` follows. */
  fault(error: unknown): void;
  /** The last event. Not called after `close()`. */
  end(reason: string): void;
}

const LIMITS = { headBytes: 16 * 1024, bodyBytes: 256 * 1024, garbageBytes: 256 * 1024 };
const ANSWER_MS = 3000;
/** Time for a server to read the last data. */
const LAST_WORDS_MS = 500;
/** Answers to one request that may demand an authorization, or another one. */
const MAX_CHALLENGES = 3;
/** Limit of unsent data: a server that does not read is considered gone. */
const MAX_UNSENT_BYTES = 256 * 1024;
const USER_AGENT = 'Kiln';
const FIRST_FINAL = 200;
const UNAUTHORIZED = 401;
const KNOWN_METHODS = 'OPTIONS, GET_PARAMETER, SET_PARAMETER, TEARDOWN';

interface Asked {
  readonly resolve: (response: RtspResponse) => void;
  readonly reject: (error: RtspError) => void;
}

/** Requests and answers of one connection to an RTSP server (RFC 2326), with media between them. Owns its socket. */
export class RtspConnection {
  /** Receives everything from when it is set. */
  sink: ConnectionSink | undefined;
  readonly #socket: Socket;
  readonly #sender: TcpSender | undefined;
  readonly #authorization: Authorization | undefined;
  readonly #reader: RtspReader;
  readonly #asked = new Map<number, Asked>();
  #sequence = 0;
  #session: string | undefined;
  #ended: string | undefined;

  /**
   * @param authorization undefined where no user is known
   * @param sender sends at the server's pace, where media is sent
   */
  constructor(socket: Socket, authorization: Authorization | undefined, sender?: TcpSender) {
    this.#socket = socket;
    this.#sender = sender;
    this.#authorization = authorization;
    this.#reader = new RtspReader(LIMITS, {
      response: (response) => this.#onResponse(response),
      request: (request) => this.#onRequest(request),
      media: (channel, data) => this.sink?.media(channel, data),
      garbage: (bytes) => this.sink?.garbage(bytes),
    });
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('error', (error) => this.end(`connection lost: ${error.message}`));
    socket.on('end', () => this.end('the server closed the connection'));
    socket.on('close', () => this.end('the connection is gone'));
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress;
  }

  /** Reason why the connection ended; undefined while it is open. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Sent with every request from now on. */
  set session(session: string) {
    this.#session = session;
  }

  expect(channel: number): void {
    this.#reader.expect(channel);
  }

  /**
   * Sends a request, and repeats it with the authorization that an answer demands.
   * @returns the final answer, whatever its status
   * @throws RtspError when none comes in time; RtspAgain when the server has closed after demanding authorization
   */
  async ask(method: string, uri: string, fields: Fields = {}, body = ''): Promise<RtspResponse> {
    let response = await this.#ask(method, uri, fields, body);
    for (let attempt = 0; attempt < MAX_CHALLENGES; attempt++) {
      const challenges = response.headers.get('www-authenticate');
      if (response.status !== UNAUTHORIZED || challenges === undefined) break;
      if (this.#authorization?.take(challenges) !== true) break;
      try {
        response = await this.#ask(method, uri, fields, body);
      } catch {
        // some servers close each connection on which they reject a request
        throw new RtspAgain(unauthorized(this.#authorization), UNAUTHORIZED);
      }
    }
    return response;
  }

  /** Sends a request whose answer is ignored. */
  tell(method: string, uri: string): void {
    this.#request(method, uri, {}, '');
  }

  /** Sends a packet of a channel between the messages. */
  media(channel: number, data: Buffer): void {
    const head = Buffer.allocUnsafe(4);
    head[0] = 0x24;
    head[1] = channel;
    head.writeUInt16BE(data.length, 2);
    this.#write(Buffer.concat([head, data]));
  }

  /** Ends the connection, and rejects pending requests. @param reason passed to the sink */
  end(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#shut(reason);
    this.sink?.end(reason);
  }

  /** Ends the connection for an error that is not the server's fault: no caller above the packet handlers could catch it. */
  fail(error: unknown): void {
    this.sink?.fault(error);
    this.end('internal error');
  }

  /** Closes without calling the sink. Data already written is still sent. Idempotent. */
  close(): void {
    if (this.#ended === undefined) this.#shut('the connection is gone');
  }

  #shut(reason: string): void {
    this.#ended = reason;
    this.#reader.close();
    const socket = this.#socket;
    if (this.#sender === undefined) {
      socket.end();
      const late = setTimeout(() => socket.destroy(), LAST_WORDS_MS);
      socket.once('close', () => clearTimeout(late));
    } else this.#sender.finish();
    for (const { reject } of this.#asked.values()) reject(new RtspError(reason));
    this.#asked.clear();
  }

  #ask(method: string, uri: string, fields: Fields, body: string): Promise<RtspResponse> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(new RtspError(this.#ended));
      const sequence = this.#request(method, uri, fields, body);
      const late = new Watchdog(ANSWER_MS, () => {
        this.#asked.delete(sequence);
        reject(new RtspError(`no answer to ${method} in time`));
      });
      this.#asked.set(sequence, {
        resolve: (response) => {
          late.close();
          resolve(response);
        },
        reject: (error) => {
          late.close();
          reject(error);
        },
      });
    });
  }

  #request(method: string, uri: string, fields: Fields, body: string): number {
    const sequence = ++this.#sequence;
    this.#write(
      writeRequest(
        method,
        uri,
        {
          CSeq: String(sequence),
          'User-Agent': USER_AGENT,
          Authorization: this.#authorization?.field(method, uri, body),
          Session: this.#session,
          ...fields,
        },
        body,
      ),
    );
    return sequence;
  }

  #receive(bytes: Buffer): void {
    if (this.#ended !== undefined) return;
    this.sink?.received(bytes.length);
    try {
      this.#reader.push(bytes, performance.now());
    } catch (error) {
      if (error instanceof RtspError) return this.end(error.message);
      this.fail(error);
    }
  }

  #onResponse(response: RtspResponse): void {
    // the final answer is still to come, within the same timeout (RFC 2326 section 7.1.1)
    if (response.status < FIRST_FINAL) return;
    const cseq = header(response.headers, 'cseq');
    // some servers leave the number out: it is then the answer to the latest request
    const sequence = cseq === undefined ? this.#sequence : Number(cseq);
    const asked = this.#asked.get(sequence);
    this.#asked.delete(sequence);
    asked?.resolve(response);
  }

  #onRequest({ method, headers }: RtspRequest): void {
    const [status, reason] =
      method === 'OPTIONS' ||
      method === 'GET_PARAMETER' ||
      method === 'SET_PARAMETER' ||
      method === 'TEARDOWN' ||
      method === 'REDIRECT'
        ? ([200, 'OK'] as const)
        : ([501, 'Not Implemented'] as const);
    const fields = {
      CSeq: header(headers, 'cseq'),
      Session: this.#session,
      Public: method === 'OPTIONS' ? KNOWN_METHODS : undefined,
    };
    this.#write(writeResponse(status, reason, fields));
    if (method === 'TEARDOWN') this.end('the server ended the stream');
    if (method === 'REDIRECT') this.end('the server redirected the client');
  }

  #write(data: string | Buffer): void {
    if (this.#ended !== undefined) return;
    if (this.#sender !== undefined)
      return void this.#sender.send([typeof data === 'string' ? Buffer.from(data) : data]);
    this.#socket.write(data);
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) this.end('the server does not read what it is sent');
  }
}
