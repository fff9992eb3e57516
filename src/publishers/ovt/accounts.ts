import { Flow } from '../../core/counters.ts';
import { sessionId, sessionName, type Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import type { OvtUrl } from '../../protocols/ovt/url.ts';
import type { Account, Found, OvtSession } from './session.ts';

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
  readonly #names: SessionNames;

  constructor(names: SessionNames) {
    this.#names = names;
  }

  /** @throws sessionRefused, sessionExists, tooManyConnections */
  async open({ application, output }: Found, { query }: OvtUrl, session: OvtSession): Promise<Account> {
    const id = sessionId(query);
    application.checkSession(output.input.name, id);
    if (sessionName(query) !== undefined) {
      await this.#names.take(application, output, id);
      // another player of this node may have come in between
      application.checkSession(output.input.name, id);
    }
    const limit = application.config.publishers.ovt?.maxConnection ?? 0;
    if (limit > 0 && application.counters.publishers.ovt >= limit) throw kilnError('tooManyConnections', limit);
    return new Player(id, output, () => {
      output.input.kicked.add(id);
      session.close('it was ended by the server');
    });
  }
}
