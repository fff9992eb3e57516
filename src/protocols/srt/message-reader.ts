import { ERROR, MESSAGE_CONTROL } from './library.ts';
import type { SrtRuntime } from './runtime.ts';

export interface MessageHandlers {
  /** Messages that came, one behind the other. Their memory is used again afterwards. */
  readonly data?: (bytes: Buffer) => void;
  /** So many messages are missing here: what follows is behind them. */
  readonly lost?: (messages: number) => void;
}

/** Messages that are taken of a connection before the others have their turn. */
const MESSAGES_AT_ONCE = 128;
/** The longest message of SRT's live mode has 1456. */
const MAX_MESSAGE_BYTES = 1500;
/** Numbers of packets have 31 bits. */
const SEQUENCE_MASK = 0x7fff_ffff;
const HALF_OF_THEM = 0x4000_0000;

/** Filled and read in the same turn. */
const control = Buffer.alloc(MESSAGE_CONTROL.bytes);

/** What comes over one connection. In live mode each message is one packet, whose number tells what is missing before it. */
export class MessageReader {
  readonly #runtime: SrtRuntime;
  readonly #socket: number;
  #expected: number | undefined;
  #closed = false;

  constructor(runtime: SrtRuntime, socket: number) {
    this.#runtime = runtime;
    this.#socket = socket;
  }

  /** Hands over what is there. @returns false when the connection is broken, and has nothing to give right now */
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

  /** Hands over nothing any more, not even what was received in this turn. */
  close(): void {
    this.#closed = true;
  }

  #missing(sequence: number): number {
    const missing = this.#expected === undefined ? 0 : (sequence - this.#expected) & SEQUENCE_MASK;
    this.#expected = (sequence + 1) & SEQUENCE_MASK;
    return missing < HALF_OF_THEM ? missing : 0;
  }
}
