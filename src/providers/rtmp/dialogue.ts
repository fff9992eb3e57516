import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import { statusInfo, type Command } from '../../protocols/rtmp/command.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { ServerConnection, type ServerConnectionEvents } from '../../protocols/rtmp/server-connection.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { readAddress } from './address.ts';
import { canReconnect, connectionProperties } from './capabilities.ts';
import { readMetadata } from './metadata.ts';
import { BEFORE_PUBLISH, RtmpPublisher, type RtmpPublisherOptions } from './publisher.ts';
import { requestOf, type RtmpClient } from './request.ts';

/** Message streams that a client may create. */
const MAX_STREAMS = 256;

export interface DialogueOptions extends Pick<RtmpPublisherOptions, 'context' | 'connection' | 'log'> {
  readonly peer: Peer;
}

/** What one client asks for, command by command. */
export class Dialogue implements ServerConnectionEvents {
  readonly wire: ServerConnection;
  readonly #options: DialogueOptions;
  #log: Logger;
  #messageStreams = 0;
  /** There from `connect` on. */
  #publisher: RtmpPublisher | undefined;
  #ended = false;

  constructor(options: DialogueOptions) {
    this.#options = options;
    this.#log = options.log;
    this.wire = new ServerConnection(BEFORE_PUBLISH, (pieces) => options.connection.write(pieces), this);
  }

  /** Names the client, and the stream that it publishes. */
  get log(): Logger {
    return this.#publisher?.log ?? this.#log;
  }

  /** The client neither publishes nor is about to. */
  get isIdle(): boolean {
    return this.#publisher?.isIdle ?? true;
  }

  get hasPublished(): boolean {
    return this.#publisher?.hasPublished ?? false;
  }

  /** @throws RtmpError when the client breaks the protocol or a limit */
  receive(data: Buffer): void {
    this.#publisher?.received(data.length);
    this.wire.receive(data);
  }

  /** @see RtmpPublisher.setHandsOver */
  setHandsOver(handsOver: boolean): boolean {
    return this.#publisher?.setHandsOver(handsOver) ?? false;
  }

  /** Asks the client to reconnect (Enhanced RTMP v2, "Reconnect Request"): to the address that it came by. */
  askToReconnect(): void {
    const info = statusInfo('status', 'NetConnection.Connect.ReconnectRequest', 'This server is about to stop');
    this.wire.call('onStatus', 0, null, info);
  }

  /** The connection is closed. Idempotent. */
  end(reason: string): void {
    this.#ended = true;
    this.#publisher?.end(reason);
  }

  command(command: Command, streamId: number): void {
    this.#inTurn(() => this.#command(command, streamId));
  }

  data(values: AmfValue[]): void {
    this.#inTurn(() => {
      const declared = readMetadata(values);
      if (declared !== undefined) this.#publisher?.metadata(declared);
      this.#publisher?.event(values);
    });
  }

  malformedData(error: RtmpError): void {
    this.#inTurn(() => {
      if (this.#publisher === undefined) throw error;
      this.#publisher.malformed(error);
    });
  }

  audio(payload: Buffer, timestamp: number): void {
    this.#publisher?.audio(payload, timestamp);
  }

  video(payload: Buffer, timestamp: number): void {
    this.#publisher?.video(payload, timestamp);
  }

  #inTurn(step: () => void): void {
    if (this.#publisher === undefined) step();
    else this.#publisher.inTurn(step);
  }

  readonly #commands: Readonly<Record<string, (command: Command, streamId: number) => void>> = {
    connect: (command) => this.#connect(command),
    createStream: ({ transactionId }) => {
      if (++this.#messageStreams > MAX_STREAMS)
        throw new RtmpError(`more than ${MAX_STREAMS} streams on one connection`);
      this.wire.call('_result', transactionId, null, this.#messageStreams);
    },
    releaseStream: (command) => this.#acknowledge(command),
    FCPublish: (command) => {
      this.#acknowledge(command);
      this.wire.call('onFCPublish', 0, null, statusInfo('status', 'NetStream.Publish.Start', text(command.args[0])));
    },
    publish: ({ args }, streamId) => this.#publisher?.publish(text(args[0]), streamId),
    FCUnpublish: (command) => {
      this.#acknowledge(command);
      this.#publisher?.unpublish();
    },
    closeStream: () => this.#publisher?.unpublish(),
    deleteStream: ({ args: [id] }) => {
      if (typeof id !== 'number' || id === this.#publisher?.streamId) this.#publisher?.unpublish();
    },
    _checkbw: (command) => this.#acknowledge(command),
    getStreamLength: ({ transactionId }) => this.wire.call('_result', transactionId, null, 0),
    play: (_command, streamId) => {
      const info = statusInfo('error', 'NetStream.Play.Failed', 'Playing over RTMP is not supported');
      this.wire.status(streamId, info);
      this.#options.connection.close('the client asked to play: RTMP is for publishing only');
    },
    // Answers to what this side called, and notices.
    _result: () => {},
    _error: () => {},
    onStatus: () => {},
  };

  #command(command: Command, streamId: number): void {
    if (this.#ended) return;
    if (this.#publisher === undefined && command.name !== 'connect') {
      throw new RtmpError(`${command.name.slice(0, 40)} before connect`);
    }
    const handler = Object.hasOwn(this.#commands, command.name) ? this.#commands[command.name] : undefined;
    if (handler !== undefined) return handler(command, streamId);
    if (command.transactionId === 0) return;
    const info = statusInfo('error', 'NetConnection.Call.Failed', `Method not found: ${command.name.slice(0, 80)}`);
    this.wire.call('_error', command.transactionId, null, info);
  }

  #acknowledge({ transactionId }: Command): void {
    if (transactionId !== 0) this.wire.call('_result', transactionId, null, undefined);
  }

  #connect({ transactionId, object }: Command): void {
    if (this.#publisher !== undefined) throw new RtmpError('the client sent connect twice');
    const address = readAddress(text(object.tcUrl), text(object.app));
    this.#log = this.#log.child({ host: address.host, app: address.app });
    const { wire } = this;
    const { peer, context, connection } = this.#options;
    const reconnects = context.extended && canReconnect(object);
    const [tcUrl, flashVer] = [text(object.tcUrl), text(object.flashVer)];
    const client: RtmpClient = { peer, address, tcUrl, flashVer, reconnects };
    try {
      context.access.checkProvider(requestOf(client, undefined));
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      const info = statusInfo('error', 'NetConnection.Connect.Rejected', error.message);
      wire.call('_error', transactionId, null, info);
      return connection.close(`refused: ${error.message}`, 'debug');
    }
    this.#publisher = new RtmpPublisher({ wire, client, context, connection, log: this.#log });
    wire.sendWindows();
    const info = {
      ...statusInfo('status', 'NetConnection.Connect.Success', 'Connection succeeded.'),
      objectEncoding: 0,
    };
    wire.call('_result', transactionId, connectionProperties(context.extended), info);
    wire.call('onBWDone', 0, null);
  }
}

function text(value: AmfValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
