import { amfObject, isAmfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { ChunkReader, type ChunkLimits } from './chunk-reader.ts';
import { ChunkStream, ChunkWriter } from './chunk-writer.ts';
import { decodeCommand, encodeCommand, type Command } from './command.ts';
import { ClientHandshake } from './handshake.ts';
import {
  decodeNumber,
  encodeNumber,
  encodeUserControl,
  MessageType,
  UserControl,
  type RtmpMessage,
} from './message.ts';
import { ReceiveWindow } from './receive-window.ts';

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
/** Bytes of a user control event of one number. */
const EVENT_BYTES = 6;

/** A client's side of RTMP, up to commands and their answers: bytes in, messages out. Knows no socket. */
export class CommandClient {
  readonly #properties: AmfObject;
  readonly #write: (pieces: readonly Buffer[]) => void;
  readonly #events: CommandClientEvents;
  readonly #handshake = new ClientHandshake();
  readonly #reader: ChunkReader;
  readonly #writer = new ChunkWriter();
  readonly #window = new ReceiveWindow();
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
    this.#reader = new ChunkReader(limits, (message) => this.#message(message));
  }

  /** Starts the handshake; the server's answers drive everything after it. */
  open(): void {
    this.#write([this.#handshake.first()]);
  }

  /** @throws RtmpError when the server breaks the protocol; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#window.add(data.length);
    let rest = data;
    if (!this.#handshake.done) {
      const { taken, answer } = this.#handshake.push(data);
      if (answer !== undefined) this.#write([answer]);
      rest = data.subarray(taken);
      if (this.#handshake.done) this.#connect();
    }
    if (rest.length > 0) this.#reader.push(rest);
    const received = this.#window.acknowledge();
    if (received !== undefined) this.#control(MessageType.Acknowledgement, encodeNumber(received));
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
      case MessageType.WindowAckSize:
        this.#window.resize(decodeNumber(message));
        return;
      case MessageType.UserControl:
        return this.#userControl(message.payload);
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

  #userControl(payload: Buffer): void {
    const event = payload.length < EVENT_BYTES ? undefined : payload.readUInt16BE(0);
    if (event === UserControl.StreamEof) this.#events.streamEnded?.();
    if (event === UserControl.PingRequest)
      this.#control(MessageType.UserControl, encodeUserControl(UserControl.PingResponse, payload.readUInt32BE(2)));
  }

  #control(type: number, body: Buffer): void {
    this.#write(this.#writer.message(ChunkStream.Control, type, 0, 0, body));
  }
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
