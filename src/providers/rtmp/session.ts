import type { Socket } from 'node:net';
import type { Access } from '../../access/access.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { ChunkLimits } from '../../protocols/rtmp/chunk-reader.ts';
import { statusInfo, type Command } from '../../protocols/rtmp/command.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { ServerConnection, type ServerConnectionEvents } from '../../protocols/rtmp/server-connection.ts';
import { withReusedReads } from '../../protocols/reused-reads.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { limitUnacknowledged } from '../../protocols/unacknowledged.ts';
import { connectionProperties } from './capabilities.ts';
import { PartialShare } from './partial-share.ts';
import { playerAnswers, Playing, type RtmpPlayers } from './playing.ts';
import { RtmpPublication } from './publication.ts';
import { clientOf, playRequestOf, refusalStatus, requestOf, sourceOf, text, type RtmpClient } from './request.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 20_000;
/** Time for the client to read the last answer and close the connection. */
const LINGER_MS = 1000;
/** Time for a player to receive the end of a stream. */
const FINISH_MS = 10_000;
const KEEP_ALIVE_MS = 15_000;
/** After so long without a byte either way, the client may have vanished. */
const SILENT_MS = 15_000;
/** After so long without an acknowledgement of sent bytes, it is taken for vanished. */
const UNACKNOWLEDGED_MS = 30_000;
const MAX_BYTES_BEFORE_PUBLISH = 256 * 1024;
const MAX_UNREAD_ANSWER_BYTES = 256 * 1024;
/** Received bytes held during admission; beyond that the socket is not read. */
const MAX_HELD_BYTES = 64 * 1024;
/** Message streams that a client may create. */
const MAX_STREAMS = 256;
/** Streams that a client may publish or play, one after the other. */
const MAX_PUBLICATIONS = 256;

const BEFORE_PUBLISH: ChunkLimits = { messageBytes: 64 * 1024, partialBytes: 128 * 1024, chunkStreams: 32 };
const PUBLISHING: ChunkLimits = { messageBytes: 8 * 1024 * 1024, partialBytes: 16 * 1024 * 1024, chunkStreams: 64 };

/**
 *   connecting ──connect──▶ idle ──publish──▶ admission ──admitted──▶ publishing
 *                           ▲ ▲ │                                         │
 *                           │ │ │           FCUnpublish, closeStream,     │
 *                           │ └─┼──────────────── deleteStream ───────────┘
 *                           │   └──play──▶ playing
 *                           │                 │
 *                           └─ closeStream, ──┘
 *                              deleteStream
 *
 * Every phase may end in `closed`: by a rejection, a fault, a timeout or the end of the connection.
 */
type Phase =
  | { readonly name: 'connecting' | 'closed' }
  | { readonly name: 'idle'; readonly client: RtmpClient }
  | Admission
  | Publishing
  | Playing;

/** Admission is pending. The socket is still read, so that its end is noticed. */
interface Admission {
  readonly name: 'admission';
  readonly client: RtmpClient;
  /** Messages that were read together with `publish`. */
  readonly deferred: (() => void)[];
  /** Bytes that came after them. */
  readonly held: Buffer[];
  heldBytes: number;
}

interface Publishing {
  readonly name: 'publishing';
  readonly client: RtmpClient;
  readonly publication: RtmpPublication;
  /** Message stream. */
  readonly streamId: number;
}

export interface SessionContext {
  readonly access: Access;
  /** Clients may publish. */
  readonly publishes: boolean;
  /** Absent where clients may not play. */
  readonly players?: RtmpPlayers | undefined;
  readonly log: Logger;
  /** Enhanced RTMP is offered and accepted. */
  readonly extended: boolean;
  /** The client uses TLS. */
  readonly secure: boolean;
  /** Bytes of incomplete messages, in all sessions of the server. */
  readonly partial: { bytes: number };
  /** Called when the session begins or ends to publish. */
  readonly onPublishing: (publishing: boolean) => void;
  /** Called when it begins or ends to play. */
  readonly onPlaying: (playing: boolean) => void;
  readonly onClose: () => void;
}

/** One RTMP client from its first byte to its last. Closing is idempotent, and its reason is logged once. */
export class RtmpSession implements ServerConnectionEvents {
  readonly #socket: Socket;
  readonly #peer: Peer;
  readonly #context: SessionContext;
  readonly #wire: ServerConnection;
  readonly #share: PartialShare;
  /** Aborts when the session closes. */
  readonly #closing = new AbortController();
  #phase: Phase = { name: 'connecting' };
  /** Names the client. */
  #clientLog: Logger;
  /** Names the stream as well, while there is one. */
  #log: Logger;
  /** The log has a line about the end of a stream of this client, or of its play. */
  #hasPublished = false;
  #messageStreams = 0;
  #publications = 0;
  /** Bytes that had been received when the last stream ended. */
  #bytesAtIdle = 0;
  /** Bytes of answers since nothing waited to be sent. */
  #unreadAnswers = 0;
  /** Ends the handshake, the wait for `publish`, or a closed connection that the client keeps open. */
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, peer: Peer, context: SessionContext) {
    this.#socket = withReusedReads(socket, (data) => this.#receive(data));
    this.#peer = peer;
    this.#context = context;
    this.#share = new PartialShare(context.partial);
    this.#clientLog = context.log.child({ remote: `${peer.remoteAddress}:${peer.remotePort}` });
    this.#log = this.#clientLog;
    this.#wire = new ServerConnection(BEFORE_PUBLISH, (pieces) => this.#write(pieces), this);
    this.#socket.setKeepAlive(true, KEEP_ALIVE_MS);
    this.#socket.setTimeout(SILENT_MS, () => this.#silent());
    this.#socket.on('drain', () => this.#drained());
    this.#socket.on('error', (error) => this.close(`connection lost: ${error.message}`));
    this.#socket.on('end', () => this.close('the client closed the connection'));
    this.#socket.on('close', () => this.#gone());
    this.#giveTime(HANDSHAKE_TIMEOUT_MS);
  }

  /**
   * Ends the session: its stream is closed, answers that were written are still sent, then the socket is closed.
   * @param level of the reason in the log: `info` becomes `debug` where the end of a stream was logged
   * @param lingerMs time for the client to receive what was sent
   */
  close(reason: string, level: 'debug' | 'info' | 'warn' | 'error' = 'info', lingerMs = LINGER_MS): void {
    const phase = this.#phase;
    if (phase.name === 'closed') return;
    this.#phase = { name: 'closed' };
    clearTimeout(this.#timer);
    this.#share.release();
    this.#closing.abort();
    if (phase.name === 'publishing') this.#end(phase.publication, reason);
    if (phase.name === 'playing') this.#endPlay(phase, reason);
    this.#log[level === 'info' && this.#hasPublished ? 'debug' : level](
      { received: this.#wire.received },
      `RTMP session closed: ${reason}`,
    );
    this.#socket.end();
    this.#timer = setTimeout(() => this.#socket.destroy(), lingerMs).unref();
  }

  /**
   * Sets whether another node may take over the stream.
   * @returns false for a client that publishes nothing, or cannot be asked to reconnect
   */
  setHandsOver(handsOver: boolean): boolean {
    const phase = this.#phase;
    if (phase.name !== 'publishing' || !phase.client.reconnects) return false;
    phase.publication.input.handsOver = handsOver;
    return true;
  }

  /** Asks the client to reconnect, to the same address (Enhanced RTMP v2, "Reconnect Request"). It publishes until it does so. */
  askToReconnect(): void {
    const info = statusInfo('status', 'NetConnection.Connect.ReconnectRequest', 'This server is about to stop');
    this.#wire.call('onStatus', 0, null, info);
  }

  command(command: Command, streamId: number): void {
    const { name, transactionId } = command;
    const phase = this.#phase;
    if (phase.name === 'admission') return void phase.deferred.push(() => this.command(command, streamId));
    if (phase.name === 'closed') return;
    if (phase.name === 'connecting' && name !== 'connect') throw new RtmpError(`${name.slice(0, 40)} before connect`);
    const handler = Object.hasOwn(this.#commands, name) ? this.#commands[name] : undefined;
    if (handler !== undefined) return handler(command, streamId);
    if (transactionId === 0) return;
    const info = statusInfo('error', 'NetConnection.Call.Failed', `Method not found: ${name.slice(0, 80)}`);
    this.#wire.call('_error', transactionId, null, info);
  }

  data(values: AmfValue[]): void {
    const phase = this.#phase;
    if (phase.name === 'publishing') phase.publication.data(values);
    else if (phase.name === 'admission') phase.deferred.push(() => this.data(values));
  }

  malformedData(error: RtmpError): void {
    const phase = this.#phase;
    if (phase.name === 'admission') return void phase.deferred.push(() => this.malformedData(error));
    if (phase.name !== 'publishing') throw error;
    phase.publication.malformedData(error);
  }

  audio(payload: Buffer, timestamp: number): void {
    const phase = this.#phase;
    if (phase.name === 'publishing') phase.publication.audio(payload, timestamp);
    else if (phase.name === 'admission') phase.deferred.push(() => this.audio(payload, timestamp));
  }

  video(payload: Buffer, timestamp: number): void {
    const phase = this.#phase;
    if (phase.name === 'publishing') phase.publication.video(payload, timestamp);
    else if (phase.name === 'admission') phase.deferred.push(() => this.video(payload, timestamp));
  }

  readonly #commands: Readonly<Record<string, (command: Command, streamId: number) => void>> = {
    connect: (command) => this.#connect(command),
    createStream: ({ transactionId }) => {
      if (++this.#messageStreams > MAX_STREAMS)
        throw new RtmpError(`more than ${MAX_STREAMS} streams on one connection`);
      this.#wire.call('_result', transactionId, null, this.#messageStreams);
    },
    releaseStream: (command) => this.#acknowledge(command),
    FCPublish: (command) => {
      this.#acknowledge(command);
      const info = statusInfo('status', 'NetStream.Publish.Start', text(command.args[0]));
      this.#wire.call('onFCPublish', 0, null, info);
    },
    publish: ({ args }, streamId) => this.#publish(text(args[0]), streamId),
    FCUnpublish: (command) => {
      this.#acknowledge(command);
      this.#unpublish();
    },
    closeStream: (_command, streamId) => this.#leaveStream(streamId === 0 ? undefined : streamId),
    deleteStream: ({ args: [id] }) => this.#leaveStream(typeof id === 'number' ? id : undefined),
    _checkbw: (command) => this.#acknowledge(command),
    getStreamLength: ({ transactionId }) => this.#wire.call('_result', transactionId, null, 0),
    play: ({ args }, streamId) => this.#play(text(args[0]), streamId),
    pause: (command) => this.#toPlaying(command),
    pauseRaw: (command) => this.#toPlaying(command),
    receiveAudio: (command) => this.#toPlaying(command),
    receiveVideo: (command) => this.#toPlaying(command),
    seek: (command, streamId) => playerAnswers.seek(this.#wire, command, streamId),
    FCSubscribe: (command) => playerAnswers.FCSubscribe(this.#wire, command),
    FCUnsubscribe: (command) => playerAnswers.FCUnsubscribe(this.#wire, command),
    // answers to calls of this side, and notices
    _result: () => {},
    _error: () => {},
    onStatus: () => {},
  };

  #acknowledge({ transactionId }: Command): void {
    if (transactionId !== 0) this.#wire.call('_result', transactionId, null, undefined);
  }

  #connect({ transactionId, object }: Command): void {
    if (this.#phase.name !== 'connecting') throw new RtmpError('the client sent connect twice');
    const { access, extended, players } = this.#context;
    const client = clientOf(this.#peer, object, extended);
    const { host, app } = client.address;
    this.#clientLog = this.#log = this.#log.child({ host, app });
    try {
      // where clients may play it is not known yet what this one wants
      if (players === undefined) access.duringHandshake.checkProvider(requestOf(client, undefined));
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const info = statusInfo('error', 'NetConnection.Connect.Rejected', error.message);
      this.#wire.call('_error', transactionId, null, info);
      return this.close(`refused: ${error.message}`, 'debug');
    }
    this.#phase = { name: 'idle', client };
    const info = statusInfo('status', 'NetConnection.Connect.Success', 'Connection succeeded.');
    this.#wire.sendWindows();
    this.#wire.call('_result', transactionId, connectionProperties(extended), { ...info, objectEncoding: 0 });
    this.#wire.call('onBWDone', 0, null);
  }

  /** @param key name of the stream, as the client gives it */
  #publish(key: string, streamId: number): void {
    const phase = this.#phase;
    if (phase.name === 'publishing' || phase.name === 'playing') {
      const info = statusInfo('error', 'NetStream.Publish.Failed', `This connection is already ${phase.name}`);
      return this.#wire.status(streamId, info);
    }
    if (phase.name !== 'idle') return;
    if (!this.#context.publishes) {
      this.#wire.status(streamId, statusInfo('error', 'NetStream.Publish.Failed', 'This port is for players'));
      return this.close('the client asked to publish on a port for players');
    }
    this.#countStream();
    const { client } = phase;
    const admission: Admission = { name: 'admission', client, deferred: [], held: [], heldBytes: 0 };
    this.#phase = admission;
    clearTimeout(this.#timer);
    this.#open(client, key).then(
      (publication) =>
        this.#proceed(admission, () => this.#begin({ name: 'publishing', client, publication, streamId })),
      (error: unknown) => this.#proceed(admission, () => this.#reject(error, streamId)),
    );
  }

  #countStream(): void {
    if (++this.#publications > MAX_PUBLICATIONS)
      throw new RtmpError(`more than ${MAX_PUBLICATIONS} streams on one connection`);
  }

  /** @param key name of the stream, as the client gives it */
  #play(key: string, streamId: number): void {
    const { players } = this.#context;
    if (players === undefined) {
      const info = statusInfo('error', 'NetStream.Play.Failed', 'Playing over RTMP is not enabled on this port');
      this.#wire.status(streamId, info);
      return this.close('the client asked to play on a port for publishers');
    }
    const before = this.#phase;
    if (before.name === 'publishing' || (before.name === 'playing' && before.streamId !== streamId)) {
      const info = statusInfo('error', 'NetStream.Play.Failed', `This connection is already ${before.name}`);
      return this.#wire.status(streamId, info);
    }
    if (before.name === 'playing') this.#leaveStream();
    const phase = this.#phase;
    if (phase.name !== 'idle') return;
    this.#countStream();
    const { client } = phase;
    const request = playRequestOf(client, key);
    this.#log = this.#clientLog.child({ stream: request.stream });
    clearTimeout(this.#timer);
    this.#phase = new Playing({
      client,
      streamId,
      request,
      players,
      socket: this.#socket,
      wire: this.#wire,
      log: this.#log,
      onServed: () => {
        this.#hasPublished = true;
        this.#context.onPlaying(true);
      },
      onEnded: (reason, level) => this.close(reason, level, FINISH_MS),
    });
  }

  #toPlaying(command: Command): void {
    if (this.#phase.name === 'playing') this.#phase.command(command);
  }

  #drained(): void {
    this.#unreadAnswers = 0;
    if (this.#phase.name === 'playing') this.#phase.writable();
  }

  /** @throws what Access.admitPublisher() and PublisherGrant.publish() do */
  async #open(client: RtmpClient, key: string): Promise<RtmpPublication> {
    const { access, extended, secure } = this.#context;
    const grant = await access.admitPublisher({ ...requestOf(client, key), signal: this.#closing.signal });
    this.#log = this.#clientLog.child({ stream: grant.stream });
    return RtmpPublication.open(grant, sourceOf(client, grant, secure), {
      extended,
      log: this.#log,
      onFailure: (reason) => this.close(reason, 'warn'),
    });
  }

  /** Takes the step that admission has decided on, and then handles everything that came during it. */
  #proceed({ deferred, held }: Admission, step: () => void): void {
    try {
      step();
      // one of them may publish again: the rest waits for that
      for (const next of deferred) next();
    } catch (error) {
      this.#fail(error);
    }
    for (const data of held) this.#receive(data);
    const phase = this.#phase;
    if (phase.name !== 'admission' || phase.heldBytes < MAX_HELD_BYTES) this.#socket.resume();
  }

  #begin(publishing: Publishing): void {
    const { publication, streamId } = publishing;
    if (this.#phase.name === 'closed') return publication.end('the publisher left');
    const { input } = publication;
    this.#phase = publishing;
    this.#wire.setLimits(PUBLISHING);
    this.#context.onPublishing(true);
    input.once('close', (reason) => this.#streamClosed(reason));
    this.#wire.streamBegin(streamId);
    const info = statusInfo('status', 'NetStream.Publish.Start', `${input.name} is now published.`);
    this.#wire.status(streamId, info);
    this.#log.debug('publishing was accepted');
  }

  #reject(error: unknown, streamId: number): void {
    if (this.#phase.name === 'closed') return;
    if (!(error instanceof KilnError)) throw error;
    this.#wire.status(streamId, statusInfo('error', refusalStatus(error), error.message));
    this.close(`refused: ${error.message}`, 'debug');
  }

  /** @param id of the message stream that ends; whichever is published or played without it */
  #leaveStream(id?: number): void {
    const phase = this.#phase;
    if (phase.name !== 'playing') return this.#unpublish(id);
    if (id !== undefined && id !== phase.streamId) return;
    this.#phase = { name: 'idle', client: phase.client };
    this.#endPlay(phase, 'the viewer ended it');
    this.#log = this.#clientLog;
    this.#idle();
  }

  #endPlay(playing: Playing, reason: string): void {
    playing.end(reason);
    this.#context.onPlaying(false);
  }

  /** @param id of the message stream that ends; whichever is published without it */
  #unpublish(id?: number): void {
    const phase = this.#phase;
    if (phase.name !== 'publishing' || (id !== undefined && id !== phase.streamId)) return;
    const { client, publication, streamId } = phase;
    this.#phase = { name: 'idle', client };
    this.#end(publication, 'the publisher ended the stream');
    this.#log.debug('the publisher has unpublished the stream');
    this.#log = this.#clientLog;
    this.#wire.setLimits(BEFORE_PUBLISH);
    const info = statusInfo('status', 'NetStream.Unpublish.Success', `${publication.input.name} is now unpublished.`);
    this.#wire.status(streamId, info);
    this.#idle();
  }

  #idle(): void {
    this.#bytesAtIdle = this.#wire.received;
    this.#giveTime(PUBLISH_TIMEOUT_MS);
  }

  /** Disconnects the client of a stream that was closed by something else: the API, its time limit, another publisher. */
  #streamClosed(reason: string): void {
    const phase = this.#phase;
    if (phase.name !== 'publishing') return;
    this.#wire.status(phase.streamId, statusInfo('error', 'NetStream.Publish.Failed', reason));
    this.close(reason);
  }

  #end(publication: RtmpPublication, reason: string): void {
    this.#hasPublished ||= publication.input.tracks.length > 0;
    publication.end(reason);
    this.#context.onPublishing(false);
  }

  #receive(data: Buffer): void {
    const phase = this.#phase;
    if (phase.name === 'closed') return;
    if (phase.name === 'admission') return this.#hold(phase, data);
    if (phase.name === 'publishing') phase.publication.input.counters.received(data.length);
    try {
      this.#read(data);
    } catch (error) {
      this.#fail(error);
    }
  }

  #hold(admission: Admission, data: Buffer): void {
    admission.held.push(Buffer.from(data));
    admission.heldBytes += data.length;
    if (admission.heldBytes >= MAX_HELD_BYTES) this.#socket.pause();
  }

  #read(data: Buffer): void {
    const wire = this.#wire;
    const { shookHands } = wire;
    wire.receive(data);
    this.#share.hold(wire.partialBytes);
    const { name } = this.#phase;
    if (name !== 'connecting' && name !== 'idle') return;
    if (!shookHands && wire.shookHands) this.#giveTime(PUBLISH_TIMEOUT_MS);
    if (wire.received - this.#bytesAtIdle > MAX_BYTES_BEFORE_PUBLISH)
      throw new RtmpError(`more than ${MAX_BYTES_BEFORE_PUBLISH} bytes without publishing`);
  }

  /** Every fault costs the client the session. */
  #fail(error: unknown): void {
    if (error instanceof RtmpError) return this.close(error.message, 'warn');
    this.#log.error({ err: error }, 'the RTMP session failed');
    this.close('internal error', 'error');
  }

  #write(pieces: readonly Buffer[]): void {
    if (this.#phase.name === 'closed' || this.#socket.destroyed) return;
    if (this.#socket.writableLength === 0) this.#unreadAnswers = 0;
    this.#socket.cork();
    for (const piece of pieces) {
      this.#socket.write(piece);
      this.#unreadAnswers += piece.length;
    }
    this.#socket.uncork();
    if (this.#unreadAnswers > MAX_UNREAD_ANSWER_BYTES && this.#socket.writableLength > 0)
      this.close('the client does not read the answers', 'warn');
  }

  /** Keep-alive finds a client that has vanished, but not while something that was sent to it is unacknowledged. */
  #silent(): void {
    this.#socket.setTimeout(0);
    limitUnacknowledged(this.#socket, UNACKNOWLEDGED_MS).catch((err: Error) =>
      this.#log.debug({ err }, 'a client that vanishes will be noticed late'),
    );
  }

  #gone(): void {
    this.close('the connection was lost');
    clearTimeout(this.#timer);
    this.#context.onClose();
  }

  #giveTime(milliseconds: number): void {
    clearTimeout(this.#timer);
    const idle = this.#context.publishes ? 'published nothing' : 'played nothing';
    const fault = this.#wire.shookHands ? idle : 'did not finish the handshake';
    this.#timer = setTimeout(() => this.close(`${fault} within ${milliseconds} ms`, 'warn'), milliseconds).unref();
  }
}
