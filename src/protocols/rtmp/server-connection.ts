import type { AmfObject, AmfValue } from './amf-value.ts';
import type { ChunkLimits } from './chunk-reader.ts';
import { ChunkStream, ChunkWriter } from './chunk-writer.ts';
import { decodeCommand, deliverData, encodeCommand, type Command, type DataEvents } from './command.ts';
import { ServerHandshake } from './handshake.ts';
import { Incoming } from './incoming.ts';
import {
  encodeNumber,
  encodePeerBandwidth,
  encodeUserControl,
  MessageType,
  splitAggregate,
  UserControl,
  type RtmpMessage,
} from './message.ts';
import { WINDOW_BYTES } from './receive-window.ts';

/** Events of a client's connection. */
export interface ServerConnectionEvents extends DataEvents {
  command(command: Command, streamId: number): void;
  audio(payload: Buffer, timestamp: number): void;
  video(payload: Buffer, timestamp: number): void;
}

/** Size of chunks to clients, once `sendWindows` was called. */
export const OUT_CHUNK_SIZE = 4096;

/** RTMP with one client: bytes in, messages out, and the protocol's own answers. Knows no socket. */
export class ServerConnection {
  readonly #write: (pieces: readonly Buffer[]) => void;
  readonly #events: ServerConnectionEvents;
  readonly #incoming: Incoming;
  readonly #writer = new ChunkWriter();

  constructor(limits: ChunkLimits, write: (pieces: readonly Buffer[]) => void, events: ServerConnectionEvents) {
    this.#write = write;
    this.#events = events;
    this.#incoming = new Incoming(new ServerHandshake(), limits, {
      write,
      control: (type, body) => this.#control(type, body),
      message: (message) => this.#message(message),
    });
  }

  get shookHands(): boolean {
    return this.#incoming.shookHands;
  }

  /** Received bytes, the handshake's included. */
  get received(): number {
    return this.#incoming.received;
  }

  /** Declared bytes of the messages that are not complete yet. */
  get partialBytes(): number {
    return this.#incoming.partialBytes;
  }

  setLimits(limits: ChunkLimits): void {
    this.#incoming.setLimits(limits);
  }

  /** @throws RtmpError when the client breaks the protocol or a limit; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#incoming.receive(data);
  }

  /** Sends the window sizes, which come before the answer to `connect`. */
  sendWindows(): void {
    this.#control(MessageType.WindowAckSize, encodeNumber(WINDOW_BYTES));
    this.#control(MessageType.SetPeerBandwidth, encodePeerBandwidth(WINDOW_BYTES));
    this.#write(this.#writer.setChunkSize(OUT_CHUNK_SIZE));
  }

  /** A command on the connection itself, answers (`_result`, `_error`) included. */
  call(name: string, transactionId: number, ...rest: AmfValue[]): void {
    const body = encodeCommand(name, transactionId, ...rest);
    this.#write(this.#writer.message(ChunkStream.Command, MessageType.CommandAmf0, 0, 0, body));
  }

  /** `onStatus` on a message stream. */
  status(streamId: number, info: AmfObject): void {
    const body = encodeCommand('onStatus', 0, null, info);
    this.#write(this.#writer.message(ChunkStream.Status, MessageType.CommandAmf0, streamId, 0, body));
  }

  streamBegin(streamId: number): void {
    this.#control(MessageType.UserControl, encodeUserControl(UserControl.StreamBegin, streamId));
  }

  streamEof(streamId: number): void {
    this.#control(MessageType.UserControl, encodeUserControl(UserControl.StreamEof, streamId));
  }

  #control(type: number, body: Buffer): void {
    this.#write(this.#writer.message(ChunkStream.Control, type, 0, 0, body));
  }

  #message(message: RtmpMessage): void {
    const { type, payload, timestamp, streamId } = message;
    switch (type) {
      case MessageType.Video:
        return this.#events.video(payload, timestamp);
      case MessageType.Audio:
        return this.#events.audio(payload, timestamp);
      case MessageType.Aggregate:
        for (const part of splitAggregate(message)) this.#message(part);
        return;
      case MessageType.CommandAmf0:
      case MessageType.CommandAmf3:
        return this.#events.command(decodeCommand(message), streamId);
      case MessageType.DataAmf0:
      case MessageType.DataAmf3:
        return deliverData(message, this.#events);
      default:
      // Acknowledgements, bandwidths and shared objects ask for nothing here.
    }
  }
}
