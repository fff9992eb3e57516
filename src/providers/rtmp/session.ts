import type { Socket } from 'node:net';
import { checkAccess } from '../../access/gate.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { internalName } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { Connection, InputStream } from '../../core/stream.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log.ts';
import type { StreamNames } from '../../origins/stream-names.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { ChunkLimits } from '../../protocols/rtmp/chunk-reader.ts';
import { statusInfo, type Command } from '../../protocols/rtmp/command.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { ServerConnection } from '../../protocols/rtmp/server-connection.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { readAddress, streamName, type PublishAddress } from './address.ts';
import { connectionProperties } from './capabilities.ts';
import { Ingest } from './ingest.ts';
import { readMetadata } from './metadata.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 20_000;
/** After the last answer, how long the client may take to read it and hang up. */
const LINGER_MS = 1000;
const KEEP_ALIVE_MS = 15_000;
const MAX_BYTES_BEFORE_PUBLISH = 256 * 1024;
const MAX_UNREAD_ANSWER_BYTES = 256 * 1024;
/** Streams that a connection may create, and that it may publish, one after the other. */
const MAX_STREAMS = 256;

/** Beyond this, in all sessions together, those end that hold more than their share of it. */
const MAX_PARTIAL_BYTES = 256 * 1024 * 1024;
const PARTIAL_SHARE_BYTES = 256 * 1024;

const BEFORE_PUBLISH: ChunkLimits = { messageBytes: 64 * 1024, partialBytes: 128 * 1024, chunkStreams: 32 };
const PUBLISHING: ChunkLimits = {
  messageBytes: 8 * 1024 * 1024, partialBytes: 16 * 1024 * 1024, chunkStreams: 64,
};

export interface SessionContext {
  readonly registry: Registry;
  readonly names: StreamNames;
  readonly log: Logger;
  /** Enhanced RTMP is offered and taken. */
  readonly extended: boolean;
  /** What all sessions of the server hold of messages that are not complete yet. */
  readonly partial: { bytes: number };
  /** The session publishes now, or no longer does. */
  readonly onPublishing: (publishing: boolean) => void;
  readonly onClose: () => void;
}

/** One stream of a session that publishes. */
interface Publication {
  readonly input: InputStream;
  readonly ingest: Ingest;
  readonly faults: FaultLog;
  readonly streamId: number;
}

/** One RTMP client from its first byte to its last. Closing is idempotent and its reason is logged once. */
export class RtmpSession {
  readonly #socket: Socket;
  readonly #peer: Peer;
  readonly #context: SessionContext;
  readonly #wire: ServerConnection;
  /** Names the connection; `#log` the stream as well while there is one. */
  #connectionLog: Logger;
  #log: Logger;
  #address: PublishAddress | undefined;
  #messageStreams = 0;
  #publications = 0;
  #publication: Publication | undefined;
  /** What came while it is being found out whether the client may have the name; the socket is not read on. */
  #deferred: (() => void)[] | undefined;
  /** Bytes that had come when publishing last ended. */
  #bytesAtIdle = 0;
  /** What of `context.partial` is this session's. */
  #partialBytes = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  #lingerTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(socket: Socket, peer: Peer, context: SessionContext) {
    this.#socket = socket;
    this.#peer = peer;
    this.#context = context;
    this.#connectionLog = context.log.child({ remote: `${peer.remoteAddress}:${peer.remotePort}` });
    this.#log = this.#connectionLog;
    this.#wire = new ServerConnection(BEFORE_PUBLISH, (pieces) => this.#write(pieces), {
      command: (command, streamId) => this.#inTurn(() => this.#command(command, streamId)),
      data: (values) => this.#inTurn(() => this.#data(values)),
      malformedData: (error) => this.#inTurn(() => this.#malformedData(error)),
      audio: (payload, timestamp) => {
        if (this.#deferred === undefined) this.#publication?.ingest.audio(payload, timestamp);
        else this.#deferred.push(() => this.#publication?.ingest.audio(payload, timestamp));
      },
      video: (payload, timestamp) => {
        if (this.#deferred === undefined) this.#publication?.ingest.video(payload, timestamp);
        else this.#deferred.push(() => this.#publication?.ingest.video(payload, timestamp));
      },
    });
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', (error) => this.close(`connection lost: ${error.message}`));
    socket.on('end', () => this.close('the client hung up'));
    socket.on('close', () => this.#gone());
    this.#giveTime(HANDSHAKE_TIMEOUT_MS);
  }

  /**
   * Ends the session: its stream is closed, what was to be answered is still sent, then the socket.
   * @param level how the reason is logged
   */
  close(reason: string, level: 'info' | 'warn' | 'error' = 'info'): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    this.#holdPartial(0);
    this.#log[level]({ received: this.#wire.received }, `RTMP session closed: ${reason}`);
    this.#endPublication(reason);
    this.#socket.end();
    this.#lingerTimer = setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  #gone(): void {
    this.close('the connection is gone');
    clearTimeout(this.#lingerTimer);
    this.#context.onClose();
  }

  #receive(data: Buffer): void {
    if (this.#closed) return;
    this.#publication?.input.counters.received(data.length);
    this.#guard(() => {
      const shaken = this.#wire.shookHands;
      this.#wire.receive(data);
      this.#holdPartial(this.#wire.partialBytes);
      if (!shaken && this.#wire.shookHands) this.#giveTime(PUBLISH_TIMEOUT_MS);
      const idle = this.#publication === undefined && this.#deferred === undefined;
      if (idle && this.#wire.received - this.#bytesAtIdle > MAX_BYTES_BEFORE_PUBLISH) {
        throw new RtmpError(`more than ${MAX_BYTES_BEFORE_PUBLISH} bytes without publishing`);
      }
    });
  }

  /** What goes wrong with a client costs it the session. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof RtmpError) return this.close(error.message, 'warn');
      this.#log.error({ err: error }, 'RTMP session failed');
      this.close('internal error', 'error');
    }
  }

  #inTurn(step: () => void): void {
    if (this.#deferred === undefined) step();
    else this.#deferred.push(step);
  }

  #holdPartial(bytes: number): void {
    if (bytes === this.#partialBytes || (this.#closed && bytes > 0)) return;
    const { partial } = this.#context;
    partial.bytes += bytes - this.#partialBytes;
    this.#partialBytes = bytes;
    if (partial.bytes > MAX_PARTIAL_BYTES && bytes > PARTIAL_SHARE_BYTES) {
      throw new RtmpError('too many unfinished messages in all sessions');
    }
  }

  #write(pieces: readonly Buffer[]): void {
    if (this.#closed || this.#socket.destroyed) return;
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
    if (this.#socket.writableLength > MAX_UNREAD_ANSWER_BYTES) this.close('the client reads no answers', 'warn');
  }

  #giveTime(milliseconds: number): void {
    clearTimeout(this.#idleTimer);
    const what = this.#wire.shookHands ? 'published nothing' : 'did not finish the handshake';
    this.#idleTimer = setTimeout(() => this.close(`${what} within ${milliseconds} ms`, 'warn'), milliseconds).unref();
  }

  readonly #commands: Readonly<Record<string, (command: Command, streamId: number) => void>> = {
    connect: (command) => this.#connect(command),
    createStream: ({ transactionId }) => {
      if (++this.#messageStreams > MAX_STREAMS) throw tooManyStreams();
      this.#wire.call('_result', transactionId, null, this.#messageStreams);
    },
    releaseStream: (command) => this.#acknowledge(command),
    FCPublish: (command) => {
      this.#acknowledge(command);
      const name = typeof command.args[0] === 'string' ? command.args[0] : '';
      this.#wire.call('onFCPublish', 0, null, statusInfo('status', 'NetStream.Publish.Start', name));
    },
    publish: (command, streamId) => this.#publish(command, streamId),
    FCUnpublish: (command) => {
      this.#acknowledge(command);
      this.#unpublish();
    },
    closeStream: () => this.#unpublish(),
    deleteStream: ({ args: [id] }) => {
      if (typeof id !== 'number' || id === this.#publication?.streamId) this.#unpublish();
    },
    _checkbw: (command) => this.#acknowledge(command),
    getStreamLength: ({ transactionId }) => this.#wire.call('_result', transactionId, null, 0),
    play: (_command, streamId) => {
      const info = statusInfo('error', 'NetStream.Play.Failed', 'Streams are not played over RTMP here');
      this.#wire.status(streamId, info);
      this.close('the client asked to play, which RTMP is not offered for');
    },
    // Answers to what this side called, and notices.
    _result: () => {},
    _error: () => {},
    onStatus: () => {},
  };

  #command(command: Command, streamId: number): void {
    if (this.#closed) return;
    if (this.#address === undefined && command.name !== 'connect') {
      throw new RtmpError(`${command.name.slice(0, 40)} before connect`);
    }
    const handler = Object.hasOwn(this.#commands, command.name) ? this.#commands[command.name] : undefined;
    if (handler !== undefined) return handler(command, streamId);
    if (command.transactionId === 0) return;
    const info = statusInfo('error', 'NetConnection.Call.Failed', `Method not found: ${command.name.slice(0, 80)}`);
    this.#wire.call('_error', command.transactionId, null, info);
  }

  #acknowledge({ transactionId }: Command): void {
    if (transactionId !== 0) this.#wire.call('_result', transactionId, null, undefined);
  }

  #connect({ transactionId, object }: Command): void {
    if (this.#address !== undefined) throw new RtmpError('connect twice');
    const address = readAddress(text(object.tcUrl), text(object.app));
    this.#connectionLog = this.#connectionLog.child({ host: address.host, app: address.app });
    this.#log = this.#connectionLog;
    try {
      this.#admit(address);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const info = statusInfo('error', 'NetConnection.Connect.Rejected', error.message);
      this.#wire.call('_error', transactionId, null, info);
      return this.close(`refused: ${error.message}`, 'warn');
    }
    this.#address = address;
    this.#wire.sendWindows();
    const info = {
      ...statusInfo('status', 'NetConnection.Connect.Success', 'Connection succeeded.'), objectEncoding: 0,
    };
    this.#wire.call('_result', transactionId, connectionProperties(this.#context.extended), info);
    this.#wire.call('onBWDone', 0, null);
  }

  /**
   * Where the client may publish to.
   * @throws accessDenied, vhostNotFound, applicationNotFound, providerDisabled
   */
  #admit({ host, app }: PublishAddress): { vhost: VirtualHost; config: RtmpProviderConfig } {
    const name = host === '' ? this.#peer.localAddress : host;
    const vhost = this.#context.registry.resolve(name);
    if (vhost === undefined) throw kilnError('vhostNotFound', name);
    checkAccess(vhost, 'providers', 'rtmp');
    const config = vhost.demandConfig(app).providers.rtmp;
    if (config === undefined) throw kilnError('providerDisabled', 'RTMP', internalName(vhost.name, app));
    return { vhost, config };
  }

  #publish({ args }: Command, streamId: number): void {
    const key = text(args[0]);
    if (this.#publication !== undefined) {
      const info = statusInfo('error', 'NetStream.Publish.Failed', 'This connection publishes already');
      return this.#wire.status(streamId, info);
    }
    if (++this.#publications > MAX_STREAMS) throw tooManyStreams();
    this.#deferred = [];
    this.#socket.pause();
    clearTimeout(this.#idleTimer);
    this.#open(key).then(
      ({ input, config }) => this.#proceed(() => this.#begin(input, config, streamId), input),
      (error: unknown) => this.#proceed(() => this.#refuse(error, streamId)),
    );
  }

  /** @throws what `#admit` and StreamNames.publish() do, streamNameInvalid */
  async #open(key: string): Promise<{ input: InputStream; config: RtmpProviderConfig }> {
    const address = this.#address as PublishAddress;
    const { vhost, config } = this.#admit(address);
    const name = streamName(key, address);
    if (name === undefined) throw kilnError('streamNameInvalid', key.split('?', 1)[0]?.slice(0, 80) ?? '');
    this.#log = this.#connectionLog.child({ stream: name });
    const url = `${address.origin}/${address.app}/${name}`;
    const input = await this.#context.names.publish(
      vhost.demandApplication(address.app),
      name,
      { type: 'Rtmp', kind: 'rtmp', url, connection: () => this.#connection() },
      { replace: !config.blockDuplicateStreamName, maxConnections: config.maxConnection, silence: 'continue' },
    );
    return { input, config };
  }

  /** Goes on with what came meanwhile. @param input that ends when the client has left by now */
  #proceed(step: () => void, input?: InputStream): void {
    const deferred = this.#deferred ?? [];
    this.#deferred = undefined;
    if (this.#closed) return input?.close('the publisher left');
    this.#guard(() => {
      step();
      // one of them may publish again, behind which the rest waits
      for (const next of deferred) if (!this.#closed) this.#inTurn(next);
    });
    if (this.#deferred === undefined) this.#socket.resume();
  }

  #refuse(error: unknown, streamId: number): void {
    if (!(error instanceof KilnError)) throw error;
    const badName = error.code === 'streamExists' || error.code === 'streamNameInvalid';
    const code = badName ? 'NetStream.Publish.BadName' : 'NetStream.Publish.Failed';
    this.#wire.status(streamId, statusInfo('error', code, error.message));
    this.close(`refused: ${error.message}`, 'warn');
  }

  #begin(input: InputStream, config: RtmpProviderConfig, streamId: number): void {
    const faults = new FaultLog(this.#log);
    const ingest = new Ingest(input, {
      config, extended: this.#context.extended, log: this.#log, faults,
      onFailure: (reason) => this.close(reason, 'warn'),
    });
    this.#publication = { input, ingest, faults, streamId };
    this.#wire.setLimits(PUBLISHING);
    this.#context.onPublishing(true);
    input.once('close', (reason) => this.#closedElsewhere(reason));
    this.#wire.streamBegin(streamId);
    this.#wire.status(streamId, statusInfo('status', 'NetStream.Publish.Start', `${input.name} is now published.`));
    this.#log.info('RTMP stream is published');
  }

  /** The client ends its stream but stays: it may publish again. */
  #unpublish(): void {
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#endPublication('the publisher ended the stream');
    this.#log.info('RTMP stream is unpublished');
    this.#log = this.#connectionLog;
    this.#wire.setLimits(BEFORE_PUBLISH);
    this.#bytesAtIdle = this.#wire.received;
    const info = statusInfo('status', 'NetStream.Unpublish.Success', `${publication.input.name} is now unpublished.`);
    this.#wire.status(publication.streamId, info);
    this.#giveTime(PUBLISH_TIMEOUT_MS);
  }

  #closedElsewhere(reason: string): void {
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#wire.status(publication.streamId, statusInfo('error', 'NetStream.Publish.Failed', reason));
    this.close(reason);
  }

  #endPublication(reason: string): void {
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#publication = undefined;
    publication.ingest.close();
    publication.faults.close();
    publication.input.close(reason);
    this.#context.onPublishing(false);
  }

  #data(values: AmfValue[]): void {
    const declared = readMetadata(values);
    if (declared !== undefined) this.#publication?.ingest.metadata(declared);
  }

  /** @throws the error where nothing is published that it could harm */
  #malformedData(error: RtmpError): void {
    if (this.#publication === undefined) throw error;
    this.#publication.faults.count(`malformed data message: ${error.message}`);
  }

  #connection(): Connection {
    const { localAddress, localPort, remoteAddress, remotePort } = this.#peer;
    return { transport: 'TCP', protocol: 'TCP', localAddress, localPort, remoteAddress, remotePort };
  }
}

function tooManyStreams(): RtmpError {
  return new RtmpError(`more than ${MAX_STREAMS} streams on one connection`);
}

function text(value: AmfValue): string {
  return typeof value === 'string' ? value : '';
}
