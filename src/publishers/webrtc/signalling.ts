import { randomInt } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { WebrtcBindConfig } from '../../config/model.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { candidateLine } from '../../webrtc/candidate.ts';
import { isEstimated } from '../../webrtc/extensions.ts';
import { parseRemoteDescription, SdpError, type RemoteMedia } from '../../webrtc/remote-description.ts';
import { offerOf, peerRole, planOffer } from './description.ts';
import type { ViewerDesk, ViewRequest } from './desk.ts';
import { parseMessage, SignallingError, type ClientMessage } from './messages.ts';
import { playlistMessage } from './rendition-info.ts';
import type { WebrtcSession } from './session.ts';

type IceServers = WebrtcBindConfig['iceServers'];

export interface SignallingOptions {
  readonly socket: WebSocket;
  readonly view: ViewRequest;
  readonly desk: ViewerDesk;
  readonly iceServers: IceServers;
  readonly log: Logger;
}

/** Messages in a burst, and per second after it: candidates come a dozen at once, nothing else does. */
const BURST = 100;
const PER_SECOND = 20;
const MAX_WAITING = 32;
/** What a player leaves unread, beyond what the system buffers, before it is cut off. */
const MAX_UNREAD_BYTES = 256 * 1024;
const NORMAL_CLOSURE = 1000;
const POLICY_VIOLATION = 1008;

/** One player on the WebSocket signalling of facts/04-webrtc-signalling.md: this server always makes the offer. */
export class SignallingConnection {
  readonly #options: SignallingOptions;
  #session: WebrtcSession | undefined;
  #id = 0;
  #answered = false;
  #waiting = 0;
  #work: Promise<void> = Promise.resolve();
  #tokens = BURST;
  #refilled = Date.now();
  #closed = false;

  constructor(options: SignallingOptions) {
    this.#options = options;
    const { socket } = options;
    socket.on('message', (data, binary) => this.#receive(data.toString(), binary));
    // ws closes the socket itself, with the fitting code; `close` follows
    socket.on('error', (error) => options.log.debug({ err: error }, 'a signalling connection failed'));
    socket.on('close', () => this.#end('the signalling connection was closed'));
  }

  #receive(text: string, binary: boolean): void {
    if (this.#closed) return;
    if (!this.#take() || this.#waiting >= MAX_WAITING) {
      this.#options.socket.close(POLICY_VIOLATION, 'too many messages');
      this.#end('the player sent too many messages');
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
    const session = this.#session;
    if (session === undefined || message.id !== this.#id) {
      // what was under way when the session ended, which the player has been told
      if (this.#id !== 0 && session === undefined && message.id === this.#id) return;
      throw new SignallingError(400, 'Invalid ID');
    }
    switch (message.command) {
      case 'answer':
        return this.#answer(session, message.sdp);
      case 'change_rendition':
        return session.changeRendition(message.name, message.auto);
      case 'stop':
        this.#end('the player left');
        this.#options.socket.close(NORMAL_CLOSURE);
        return;
      case 'candidate':
    }
  }

  async #offer(): Promise<void> {
    const { desk, view, iceServers } = this.#options;
    this.#drop('the player asked for a new offer');
    const direction = view.query.get('direction');
    if (direction === 'send' || direction === 'whip') throw new SignallingError(404, 'Cannot create offer');
    const admission = await desk.admit(view);
    const session = await desk.open(admission, planOffer(admission));
    if (this.#closed) {
      session.close('the signalling connection was closed');
      return;
    }
    this.#session = session;
    this.#id = randomInt(1, 2 ** 31);
    this.#answered = false;
    this.#listen(session);
    const [first] = session.media;
    this.#send({
      command: 'offer',
      id: this.#id,
      peer_id: 0,
      sdp: { type: 'offer', sdp: offerOf(session) },
      candidates: session.candidates.map((candidate) => ({
        candidate: candidateLine(candidate),
        sdpMLineIndex: 0,
        sdpMid: first?.mid ?? '0',
      })),
      code: 200,
      ...iceServerFields(iceServers),
    });
  }

  async #answer(session: WebrtcSession, sdp: string): Promise<void> {
    if (this.#answered) throw new SignallingError(400, 'Could not parse SDP');
    const answer = parseRemoteDescription(sdp);
    this.#answered = true;
    let reports = false;
    for (const { mid, kind, rtpParameters } of session.media) {
      const section = answer.media.find((media) => media.mid === mid);
      const payloadType = rtpParameters.codecs[0]?.payloadType;
      const taken = section?.receives && section.codecs.some((codec) => codec.payloadType === payloadType);
      if (!taken) session.drop(mid);
      else if (kind === 'video') reports = isReported(section);
    }
    try {
      await session.connect({ fingerprint: answer.fingerprint, role: peerRole(answer.setup), reports });
    } catch (error) {
      // a session that has ended meanwhile has told the player itself
      if (!session.closed) throw error;
    }
  }

  #listen(session: WebrtcSession): void {
    session.once('connected', () => {
      const message = playlistMessage(session.stream, session.selection, session.auto);
      this.#send({ command: 'notification', type: 'playlist', message });
    });
    session.on('rendition', ({ name }, auto) => {
      const message = { rendition_name: name, auto };
      this.#send({ command: 'notification', type: 'rendition_changed', message });
    });
    session.once('close', (reason, lost) => {
      if (this.#session !== session) return;
      this.#session = undefined;
      // a player that is told to stop asks for a new offer at once, which another worker can make
      if (lost) this.#send({ command: 'stop', id: this.#id, peer_id: 0 });
      else this.#options.socket.close(NORMAL_CLOSURE, reason.slice(0, 100));
    });
  }

  #fail(error: Error): void {
    const { socket, log } = this.#options;
    const { code, text } = errorFields(error);
    if (code >= 500) log.warn({ err: error }, 'a signalling session failed');
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

  /** Ends the session, without a word to the player. */
  #drop(reason: string): void {
    const session = this.#session;
    this.#session = undefined;
    session?.close(reason);
  }

  #end(reason: string): void {
    this.#closed = true;
    this.#drop(reason);
  }

  #take(): boolean {
    const now = Date.now();
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#refilled) / 1000) * PER_SECOND);
    this.#refilled = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** Whether an answer keeps what the offer told of reports. */
function isReported({ codecs, extensions }: RemoteMedia): boolean {
  return isEstimated({ codecs: codecs.map(({ feedback }) => ({ rtcpFeedback: feedback })), headerExtensions: extensions });
}

/** What cannot be offered, for whatever reason, is one and the same to a player: the names of streams are not told. */
function errorFields(error: Error): { code: number; text: string } {
  if (error instanceof SignallingError) return { code: error.code, text: error.message };
  if (error instanceof SdpError) return { code: 400, text: 'Could not parse SDP' };
  if (error instanceof KilnError && error.code === 'sessionRefused') return { code: 403, text: 'Forbidden' };
  if (error instanceof KilnError && error.status < 500) return { code: 404, text: 'Cannot create offer' };
  return { code: error instanceof KilnError ? error.status : 500, text: 'Cannot create offer' };
}

function iceServerFields(iceServers: IceServers): object {
  if (iceServers.length === 0) return {};
  return {
    iceServers: iceServers.map(({ urls, userName, credential }) => ({ urls, username: userName, credential })),
    ice_servers: iceServers.map(({ urls, userName, credential }) => ({ urls, user_name: userName, credential })),
  };
}
