import { Flow } from '../../core/counters.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Account } from './session.ts';

/** A player of OVT, listed and counted until it leaves. */
export class OvtPlayer implements Session, Account {
  readonly kind = 'ovt';
  readonly id: string;
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly #output: OutputStream;
  readonly #close: (reason: string) => void;
  readonly #undo: () => void;
  readonly #onLeft: (reason: string) => void;

  /**
   * @param close ends its connection
   * @param onLeft called when it has gone
   */
  constructor(id: string, output: OutputStream, close: (reason: string) => void, onLeft: (reason: string) => void) {
    this.id = id;
    this.#output = output;
    this.#close = close;
    this.#onLeft = onLeft;
    this.#undo = output.addSession(this);
  }

  sent(bytes: number): void {
    const now = Date.now();
    this.out.add(bytes, now);
    this.#output.counters.sentTo('ovt', bytes, now);
  }

  kick(): void {
    this.#output.input.kicked.add(this.id);
    this.#close('it was ended by the server');
  }

  leave(reason: string): void {
    this.#undo();
    this.#onLeft(reason);
  }
}
