import { Flow } from '../../core/counters.ts';
import { sessionId, type Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { OvtUrl } from '../../protocols/ovt/url.ts';
import type { Account, Found, OvtSession } from './session.ts';

/** Names of sessions that were thrown out of a stream, the oldest forgotten first. */
const MAX_KICKED = 1000;

class Player implements Session, Account {
  readonly kind = 'ovt';
  readonly id: string;
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly kick: () => void;
  readonly leave: () => void;
  readonly #output: OutputStream;

  constructor(id: string, output: OutputStream, kick: () => void) {
    this.id = id;
    this.kick = kick;
    this.#output = output;
    this.leave = output.addSession(this);
  }

  sent(bytes: number): void {
    const now = Date.now();
    this.out.add(bytes, now);
    this.#output.counters.sent(bytes, now);
  }
}

/** Lists and counts the players of OVT. */
export class Accounts {
  readonly #kicked = new WeakMap<OutputStream, Set<string>>();

  /** @throws sessionRefused, sessionExists, tooManyConnections */
  open({ application, output }: Found, { query }: OvtUrl, session: OvtSession): Account {
    const id = sessionId(query);
    if (this.#kicked.get(output)?.has(id)) throw kilnError('sessionRefused', id);
    if (output.input.session(id) !== undefined) throw kilnError('sessionExists', id);
    const limit = application.config.publishers.ovt?.maxConnection ?? 0;
    if (limit > 0 && application.counters.publishers.ovt >= limit) throw kilnError('tooManyConnections', limit);
    return new Player(id, output, () => {
      this.#keepOut(output, id);
      session.close('it was ended by the server');
    });
  }

  #keepOut(output: OutputStream, id: string): void {
    const kicked = this.#kicked.get(output) ?? new Set();
    this.#kicked.set(output, kicked);
    kicked.add(id);
    if (kicked.size > MAX_KICKED) kicked.delete(kicked.values().next().value as string);
  }
}
