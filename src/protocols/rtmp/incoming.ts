import { ChunkReader, type ChunkLimits } from './chunk-reader.ts';
import {
  decodeNumber,
  encodeNumber,
  encodeUserControl,
  MessageType,
  UserControl,
  type RtmpMessage,
} from './message.ts';
import { ReceiveWindow } from './receive-window.ts';

/** The first bytes of a connection, of either side. */
interface Handshake {
  readonly done: boolean;
  push(data: Buffer): { readonly taken: number; readonly answer: Buffer | undefined };
}

export interface IncomingEvents {
  /** Sends bytes of the handshake. */
  write(pieces: readonly Buffer[]): void;
  /** Sends a message of the protocol itself: an acknowledgement, the answer to a ping. */
  control(type: number, body: Buffer): void;
  /** The handshake is done. Messages that came with its last bytes follow. */
  shookHands?(): void;
  /** Every message but those that are answered here. */
  message(message: RtmpMessage): void;
}

/** Bytes of a user control event of one number. */
const EVENT_BYTES = 6;

/** The bytes that one side of a connection receives: handshake, chunks, and what the protocol itself answers. Knows no socket. */
export class Incoming {
  readonly #handshake: Handshake;
  readonly #events: IncomingEvents;
  readonly #reader: ChunkReader;
  readonly #window = new ReceiveWindow();

  constructor(handshake: Handshake, limits: ChunkLimits, events: IncomingEvents) {
    this.#handshake = handshake;
    this.#events = events;
    this.#reader = new ChunkReader(limits, (message) => this.#message(message));
  }

  get shookHands(): boolean {
    return this.#handshake.done;
  }

  /** Received bytes, the handshake's included. */
  get received(): number {
    return this.#window.received;
  }

  /** Declared bytes of the messages that are not complete yet. */
  get partialBytes(): number {
    return this.#reader.partialBytes;
  }

  setLimits(limits: ChunkLimits): void {
    this.#reader.setLimits(limits);
  }

  /** @throws RtmpError when the other side breaks the protocol or a limit; the connection is then of no more use */
  receive(data: Buffer): void {
    this.#window.add(data.length);
    let rest = data;
    if (!this.#handshake.done) {
      const { taken, answer } = this.#handshake.push(data);
      if (answer !== undefined) this.#events.write([answer]);
      rest = data.subarray(taken);
      if (this.#handshake.done) this.#events.shookHands?.();
    }
    if (rest.length > 0) this.#reader.push(rest);
    const received = this.#window.acknowledge();
    if (received !== undefined) this.#events.control(MessageType.Acknowledgement, encodeNumber(received));
  }

  #message(message: RtmpMessage): void {
    const { type, payload } = message;
    if (type === MessageType.WindowAckSize) this.#window.resize(decodeNumber(message));
    else if (type === MessageType.UserControl && isPing(payload))
      this.#events.control(
        MessageType.UserControl,
        encodeUserControl(UserControl.PingResponse, payload.readUInt32BE(2)),
      );
    else this.#events.message(message);
  }
}

function isPing(event: Buffer): boolean {
  return event.length >= EVENT_BYTES && event.readUInt16BE(0) === UserControl.PingRequest;
}
