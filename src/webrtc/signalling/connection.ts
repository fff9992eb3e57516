import { randomInt } from 'node:crypto';
import type { WebSocket } from 'ws';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { candidateLine } from '../candidate.ts';
import { iceServersFor, offerFields } from '../ice-servers.ts';
import { parseRemoteDescription, SdpError } from '../remote-description.ts';
import type { SignallingHandler, Offered, SessionEnd } from './handler.ts';
import { parseMessage, SignallingError, type ClientMessage } from './messages.ts';
import type { PeerRequest } from './request.ts';

export interface ConnectionOptions {
  readonly socket: WebSocket;
  readonly request: PeerRequest;
  /** Undefined where the port does not serve the requested direction: every offer is rejected. */
  readonly handler: SignallingHandler | undefined;
  /** Logs a peer rejected for lack of `handler`. */
  readonly onUnavailable: () => void;
  readonly log: Logger;
}

const MAX_WAITING = 32;
/** Messages in a burst, and per second after it: only candidates come a dozen at once. */
const MAX_BURST = 100;
const MESSAGES_PER_SECOND = 20;
/** Limit of bytes that a peer leaves unread, beyond the system's buffers; then it is disconnected. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Code of the message for a peer whose admission has ended. */
const FORBIDDEN = 403;
const NORMAL_CLOSURE = 1000;
const POLICY_VIOLATION = 1008;

/** One peer of the WebSocket signalling (docs/compatibility.md#webrtc-signalling), where the server always makes the offer. */
export class SignallingConnection {
  readonly #options: ConnectionOptions;
  readonly #rate = new TokenBucket(MAX_BURST, 1000 / MESSAGES_PER_SECOND);
  /** Aborts when the peer has gone or is disconnected. */
  readonly #gone = new AbortController();
  #offered: Offered | undefined;
  #id = 0;
  #answered = false;
  #waiting = 0;
  #work: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { socket } = options;
    socket.on('message', (data, binary) => this.#receive((data as Buffer).toString(), binary));
    // ws closes the socket itself, with the fitting code; `close` follows
    socket.on('error', (error) => options.log.debug({ err: error }, 'a signalling connection failed'));
    socket.on('close', () => this.#end('the signalling connection was closed'));
  }

  #receive(text: string, binary: boolean): void {
    if (this.#closed) return;
    if (!this.#rate.take() || this.#waiting >= MAX_WAITING) {
      this.#options.socket.close(POLICY_VIOLATION, 'too many messages');
      this.#end('the peer sent too many messages');
      return;
    }
    this.#waiting++;
    this.#work = this.#work.then(async () => {
      this.#waiting--;
      if (this.#closed) return;
      try {
        if (binary) throw new SignallingError(400, 'Invalid message');
        await this.#handle(parseMessage(text));
      } catch (error) {
        this.#fail(error as Error);
      }
    });
  }

  async #handle(message: ClientMessage): Promise<void> {
    if (message.command === 'request_offer') return this.#offer();
    const offered = this.#offered;
    if (offered === undefined || message.id !== this.#id) {
      // sent before the peer learned that the session ended
      if (this.#id !== 0 && offered === undefined && message.id === this.#id) return;
      throw new SignallingError(400, 'Invalid ID');
    }
    switch (message.command) {
      case 'answer':
        return this.#answer(offered, message.sdp);
      case 'change_rendition':
        return offered.changeRendition(message.name, message.auto);
      case 'stop':
        this.#end('the peer left');
        this.#options.socket.close(NORMAL_CLOSURE);
        return;
      case 'candidate':
    }
  }

  async #offer(): Promise<void> {
    const { handler, request, onUnavailable } = this.#options;
    this.#drop('the peer asked for a new offer');
    if (handler === undefined) {
      onUnavailable();
      throw new SignallingError(404, 'Cannot create offer');
    }
    let offered: Offered | undefined;
    const made = await handler.offer(
      { ...request, signal: this.#gone.signal },
      {
        notify: (message) => this.#send({ command: 'notification', ...message }),
        closed: (reason, end) => this.#ended(offered, reason, end),
      },
    );
    offered = made;
    const { session, sdp } = made;
    if (session.closed) throw kilnError('mediaUnavailable');
    if (this.#closed) {
      session.close('the signalling connection was closed');
      return;
    }
    this.#offered = made;
    this.#id = randomInt(1, 2 ** 31);
    this.#answered = false;
    this.#send({
      command: 'offer',
      id: this.#id,
      peer_id: 0,
      sdp: { type: 'offer', sdp },
      candidates: session.candidates.map((candidate) => ({
        candidate: candidateLine(candidate),
        sdpMLineIndex: 0,
        // mids of this server's offers count from 0
        sdpMid: '0',
      })),
      code: 200,
      ...offerFields(iceServersFor(handler.bind, request)),
    });
  }

  async #answer(offered: Offered, sdp: string): Promise<void> {
    if (this.#answered) throw new SignallingError(400, 'Could not parse SDP');
    const answer = parseRemoteDescription(sdp);
    this.#answered = true;
    try {
      await offered.answer(answer);
    } catch (error) {
      // a closed session has notified the peer itself
      if (!offered.session.closed) throw error;
    }
  }

  #ended(offered: Offered | undefined, reason: string, end: SessionEnd): void {
    if (offered === undefined || this.#offered !== offered) return;
    this.#offered = undefined;
    // a stopped player asks for a new offer at once, which another worker can make
    if (end === 'lost') return this.#send({ command: 'stop', id: this.#id, peer_id: 0 });
    if (end === 'expired') this.#send({ code: FORBIDDEN, error: reason });
    this.#options.socket.close(NORMAL_CLOSURE, reason.slice(0, 100));
  }

  #fail(error: Error): void {
    const { socket, log } = this.#options;
    const { code, text } = errorFields(error);
    if (code >= 500) log.warn({ err: error }, 'the signalling session failed');
    else log.debug({ code, error: error.message }, 'a signalling client was refused');
    this.#send({ code, error: text });
    this.#end(text);
    socket.close(NORMAL_CLOSURE);
  }

  #send(message: object): void {
    const { socket } = this.#options;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
    else socket.send(JSON.stringify(message));
  }

  /** Ends the session without notifying the peer. */
  #drop(reason: string): void {
    const offered = this.#offered;
    this.#offered = undefined;
    offered?.session.close(reason);
  }

  #end(reason: string): void {
    this.#closed = true;
    this.#gone.abort();
    this.#drop(reason);
  }
}

/** Code and text of an error for a peer. All reasons against an offer look the same, to hide which streams exist. */
export function errorFields(error: Error): { code: number; text: string } {
  if (error instanceof SignallingError) return { code: error.code, text: error.message };
  if (error instanceof SdpError) return { code: 400, text: 'Could not parse SDP' };
  if (error instanceof KilnError && error.code === 'sessionRefused') return { code: 403, text: 'Forbidden' };
  if (error instanceof KilnError && error.status < 500) return { code: 404, text: 'Cannot create offer' };
  return { code: error instanceof KilnError ? error.status : 500, text: 'Cannot create offer' };
}
