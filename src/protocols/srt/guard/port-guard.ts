import type { Logger } from '../../../log/log.ts';
import { nothing, rules, WINDOW_NUMBERS } from './rules.ts';
import type { UdpSocket } from './udp-socket.ts';

/** Messages sent to one peer. */
export interface Sender {
  /** Number of its socket. */
  readonly socket: number;
  /** Sequence number of the first message. */
  readonly first: number;
  /** Messages so far. */
  readonly sent: number;
}

const SEQUENCE_MASK = 0x7fff_ffff;
/** Removals within this time share one change of the rules. */
const BATCH_MS = 10;
const CHECK_MS = 1000;
/** Messages that may be on their way: a window begins so far before the newest one. */
const BEHIND = WINDOW_NUMBERS / 4;
/** Messages after which a window is moved. */
const STEP = WINDOW_NUMBERS / 4;

/** Filters packets that would harm libsrt from the socket of one port. */
export class PortGuard {
  readonly udp: UdpSocket;
  readonly #log: Logger;
  /** Value: messages that it had sent when the rules were made. */
  readonly #senders = new Map<Sender, number>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();
  #batch: NodeJS.Timeout | undefined;
  #failed = false;

  constructor(udp: UdpSocket, log: Logger) {
    this.udp = udp;
    this.#log = log;
    this.#apply();
  }

  /** Accepts acknowledgements of the sender's messages from now on. */
  add(sender: Sender): void {
    this.#senders.set(sender, sender.sent);
    this.#apply();
  }

  delete(sender: Sender): void {
    if (this.#senders.delete(sender)) this.#batch ??= setTimeout(() => this.#apply(), BATCH_MS).unref();
  }

  /** Drops every packet from now on. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#batch);
    this.#senders.clear();
    try {
      this.udp.filter(nothing());
    } catch (error) {
      this.#log.error({ err: error }, 'an SRT port could not be shut while it closes');
    }
    this.udp.close();
  }

  #check(): void {
    for (const [sender, before] of this.#senders) if (sender.sent - before > STEP) return this.#apply();
  }

  #apply(): void {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    const windows = Array.from(this.#senders.keys(), (sender) => {
      this.#senders.set(sender, sender.sent);
      return { socket: sender.socket, first: (sender.first + Math.max(sender.sent - BEHIND, 0)) & SEQUENCE_MASK };
    });
    try {
      this.udp.filter(rules(windows));
      this.#failed = false;
    } catch (error) {
      this.#fail(error, windows.length);
    }
  }

  /** Falls back to rules without windows, or to no filter where the system has none: the port goes on serving. */
  #fail(error: unknown, senders: number): void {
    if (!this.#failed) {
      const why =
        'the packet filter of an SRT port is too long for the kernel (net.core.optmem_max): a hostile SRT caller could delay this port';
      this.#log.error({ err: error, viewers: senders }, why);
    }
    this.#failed = true;
    try {
      this.udp.filter(rules(undefined));
    } catch (cause) {
      this.#log.error({ err: cause }, 'the packet filter of an SRT port could not be removed');
    }
  }
}
