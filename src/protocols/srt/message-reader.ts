import { ERROR, MESSAGE_CONTROL } from './library.ts';
import type { SrtRuntime } from './runtime.ts';

export interface MessageHandlers {
  /** Received messages, concatenated. Their memory is reused afterwards. */
  readonly data?: (bytes: Buffer) => void;
  /** Number of messages that are missing before the next data. */
  readonly lost?: (messages: number) => void;
}

/** Messages read from one connection before the others have their turn. */
const MESSAGES_AT_ONCE = 128;
/** Bound for SRT's live mode, whose longest message has 1456 bytes. */
const MAX_MESSAGE_BYTES = 1500;
/** Sequence numbers have 31 bits. */
const SEQUENCE_MASK = 0x7fff_ffff;
const HALF_OF_THEM = 0x4000_0000;

const control = Buffer.alloc(MESSAGE_CONTROL.bytes);

/** Reads the messages of one connection. In live mode a message is one packet, whose sequence number shows losses. */
export class MessageReader {
  readonly #runtime: SrtRuntime;
  readonly #socket: number;
  #expected: number | undefined;
  #closed = false;

  constructor(runtime: SrtRuntime, socket: number) {
    this.#runtime = runtime;
    this.#socket = socket;
  }

  /** Delivers what has arrived. @returns false when the connection is broken and there is nothing to read right now */
  read({ data, lost }: MessageHandlers): boolean {
    const { library, scratch } = this.#runtime;
    let from = 0;
    let to = 0;
    const give = (): void => {
      if (to > from && !this.#closed) data?.(scratch.subarray(from, to));
      from = to;
    };
    for (let messages = 0; messages < MESSAGES_AT_ONCE && !this.#closed; messages++) {
      if (scratch.length - to < MAX_MESSAGE_BYTES) {
        give();
        from = to = 0;
      }
      const bytes = library.receive(
        this.#socket,
        to === 0 ? scratch : scratch.subarray(to),
        scratch.length - to,
        control,
      );
      if (bytes <= 0) {
        const isOver = bytes === 0 || library.lastError() !== ERROR.asyncReceive;
        give();
        return !isOver;
      }
      const missing = this.#missing(control.readInt32LE(MESSAGE_CONTROL.sequence));
      if (missing > 0) {
        give();
        if (!this.#closed) lost?.(missing);
      }
      to += bytes;
    }
    give();
    return true;
  }

  /** Stops delivery, also of what was received in this turn. */
  close(): void {
    this.#closed = true;
  }

  #missing(sequence: number): number {
    const missing = this.#expected === undefined ? 0 : (sequence - this.#expected) & SEQUENCE_MASK;
    this.#expected = (sequence + 1) & SEQUENCE_MASK;
    return missing < HALF_OF_THEM ? missing : 0;
  }
}
