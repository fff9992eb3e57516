import { amfObject, isAmfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import type { ChunkLimits } from './chunk-reader.ts';
import { ChunkStream, ChunkWriter } from './chunk-writer.ts';
import { decodeCommand, encodeCommand, type Command } from './command.ts';
import { ClientHandshake } from './handshake.ts';
import { Incoming } from './incoming.ts';
import { MessageType, UserControl, type RtmpMessage } from './message.ts';

/** Events of a client's connection. */
export interface CommandClientEvents {
  /** The server accepts `connect`, with these properties. */
  connected(properties: readonly AmfObject[]): void;
  /** The answer to a command other than `connect`. */
  answered(name: string, answer: Command): void;
  /** The server rejects a command: the caller decides what that ends. */
  rejected(name: string, answer: Command): void;
  /** `onStatus` of the server. */
  status(info: AmfObject): void;
  /** Messages of a stream: audio, video and data, aggregates among them. */
  media?(message: RtmpMessage): void;
  /** The server ends a message stream (`StreamEOF`). */
  streamEnded?(): void;
  /** The server closes the connection. */
  ended(reason: string): void;
}

const CHUNK_SIZE = 4096;

/** A client's side of RTMP, up to commands and their answers: bytes in, messages out. Knows no socket. */
export class CommandClient {
  readonly #properties: AmfObject;
  readonly #write: (pieces: readonly Buffer[]) => void;
  readonly #events: CommandClientEvents;
  readonly #handshake = new ClientHandshake();
  readonly #incoming: Incoming;
  readonly #writer = new ChunkWriter();
  /** Names of unanswered commands, by transaction. */
  readonly #asked = new Map<number, string>();
  #transaction = 0;

  /** @param properties of `connect` @param limits of the server's messages */
  constructor(
    properties: AmfObject,
    limits: ChunkLimits,
    write: (pieces: readonly Buffer[]) => void,
    events: CommandClientEvents,
  ) {
    this.#properties = properties;
    this.#write = write;
    this.#events = events;
    this.#incoming = new Incoming(this.#handshake, limits, {
      write,
      control: (type, body) => this.send(ChunkStream.Control, type, 0, 0, body),
      shookHands: () => this.#connect(),
      message: (message) => this.#message(message),
    });
  }

  /** Starts the handshake; the server's answers drive everything after it. */
  open(): void {
    this.#write([this.#handshake.first()]);
  }

  /** @throws RtmpError when the server breaks the protocol; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#incoming.receive(data);
  }

  /** Sends a command to which the server answers. @param streamId of its message stream; 0: of the connection */
  ask(streamId: number, name: string, ...rest: AmfValue[]): void {
    this.#asked.set(this.command(streamId, name, ...rest), name);
  }

  /** Sends a command, whatever the server answers. @returns its transaction */
  command(streamId: number, name: string, ...rest: AmfValue[]): number {
    const transaction = ++this.#transaction;
    const body = encodeCommand(name, transaction, ...rest);
    this.#write(this.#writer.message(ChunkStream.Command, MessageType.CommandAmf0, streamId, 0, body));
    return transaction;
  }

  /** Sends a message of a stream, its body in pieces. @param timestamp milliseconds */
  send(chunkStream: number, type: number, streamId: number, timestamp: number, ...body: Buffer[]): void {
    this.#write(this.#writer.message(chunkStream, type, streamId, timestamp, ...body));
  }

  #connect(): void {
    this.#write(this.#writer.setChunkSize(CHUNK_SIZE));
    this.ask(0, 'connect', this.#properties);
  }

  #message(message: RtmpMessage): void {
    switch (message.type) {
      case MessageType.CommandAmf0:
      case MessageType.CommandAmf3:
        return this.#command(decodeCommand(message));
      case MessageType.UserControl:
        if (isStreamEof(message.payload)) this.#events.streamEnded?.();
        return;
      default:
        // what else there is asks for nothing where no media is expected
        this.#events.media?.(message);
    }
  }

  #command(command: Command): void {
    const { name, transactionId, object, args } = command;
    if (name === 'onStatus') return this.#events.status(infoOf(command));
    if (name === 'close') return this.#events.ended('the server closed the connection');
    const asked = this.#asked.get(transactionId);
    if (asked === undefined || (name !== '_result' && name !== '_error')) return;
    this.#asked.delete(transactionId);
    if (name === '_error') this.#events.rejected(asked, command);
    else if (asked === 'connect') this.#events.connected([object, ...args].filter((value) => isAmfObject(value)));
    else this.#events.answered(asked, command);
  }
}

function isStreamEof(event: Buffer): boolean {
  return event.length >= 2 && event.readUInt16BE(0) === UserControl.StreamEof;
}

/** The information object of an answer or a status; empty where it has none. */
export function infoOf({ args }: Command): AmfObject {
  return args.find((value): value is AmfObject => isAmfObject(value)) ?? amfObject();
}

/** Text of an information object, in quotation marks. */
export function reasonOf({ code, description }: AmfObject): string {
  const texts = [description, code].filter((text): text is string => typeof text === 'string' && text !== '');
  return texts.length === 0 ? 'it gives no reason' : `"${texts.join(', ')}"`;
}
