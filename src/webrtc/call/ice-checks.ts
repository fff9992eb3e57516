import { randomBytes } from 'node:crypto';
import { readStun, TRANSACTION_BYTES, writeStun, type StunMessage } from '../../protocols/stun/message.ts';

export interface IceCredentials {
  readonly usernameFragment: string;
  readonly password: string;
}

/** Where a peer may be reached. */
export interface IceAddress {
  readonly address: string;
  readonly port: number;
}

export interface RemoteCandidate extends IceAddress {
  readonly priority: number;
}

export interface IceChecksOptions {
  readonly local: IceCredentials;
  readonly send: (datagram: Buffer, to: IceAddress) => void;
  /** Called once, with the address that the peer has agreed to. */
  readonly onSelected: (to: IceAddress) => void;
  /** Called with an address that the peer has proved to be its own, and that `add` may be called with. */
  readonly onPeer: (from: RemoteCandidate) => void;
}

interface Pair extends RemoteCandidate {
  state: 'checking' | 'valid' | 'nominating' | 'selected';
  transaction: Buffer;
  request: Buffer;
  sentAt: number;
}

/** Limit of addresses of one peer, of which every one is sent requests. */
const MAX_PAIRS = 24;
/** Interval of requests that have no answer yet (RFC 8445 section 14.3). */
const RETRY_MS = 200;
/** Wait for an address of higher priority, from the first one that answers on. */
const BETTER_MS = 200;
/** Interval of requests by which the peer agrees to be sent to (RFC 7675 section 5.1). */
const CONSENT_MS = 4000;
/** Time without consent after which nothing may be sent (RFC 7675 section 5.1). */
const EXPIRY_MS = 30_000;
/** Number of an agent that has made the offer and keeps the control: no other number is larger. */
const TIE_BREAKER = 2n ** 64n - 1n;
const ROLE_CONFLICT = 487;
/** Priority of peer-reflexive candidates of one component (RFC 8445 section 5.1.2). */
const PRIORITY = 110 * 2 ** 24 + 65_535 * 256 + 255;

/**
 * Connectivity checks of ICE (RFC 8445) from the controlling side, which has made the offer: asks each address of the peer, chooses
 * the best that answers, and keeps its consent. It works with full and lite peers. Without timers or sockets of its own.
 */
export class IceChecks {
  readonly #options: IceChecksOptions;
  readonly #pairs = new Map<string, Pair>();
  /** Addresses of peer-reflexive candidates (RFC 8445 section 7.3.1.3): each is reported once, as many as there may be pairs. */
  readonly #reflexive = new Set<string>();
  #remote: IceCredentials | undefined;
  /** Time of the first answer, by the monotonic clock. */
  #validAt: number | undefined;
  #consentAt = 0;

  constructor(options: IceChecksOptions) {
    this.#options = options;
  }

  get selected(): IceAddress | undefined {
    return [...this.#pairs.values()].find(({ state }) => state === 'selected');
  }

  /** Whether an address has answered, so that media may come from there. */
  isValid({ address, port }: IceAddress): boolean {
    const pair = this.#pairs.get(keyOf(address, port));
    return pair !== undefined && pair.state !== 'checking';
  }

  /** Begins with the checks. @param remote credentials of the peer's answer */
  begin(remote: IceCredentials): void {
    this.#remote = remote;
  }

  /** Adds an address to send requests to, unless there are too many. */
  add({ address, port, priority }: RemoteCandidate): void {
    const key = keyOf(address, port);
    if (this.#pairs.has(key) || this.#pairs.size >= MAX_PAIRS) return;
    const nothing = Buffer.alloc(0);
    const pair: Pair = {
      ...{ address, port, priority, state: 'checking' as const },
      ...{ transaction: nothing, request: nothing, sentAt: -Infinity },
    };
    this.#pairs.set(key, pair);
  }

  /** Takes a datagram of STUN. @param now of the monotonic clock, in milliseconds */
  receive(datagram: Buffer, from: IceAddress, now: number): void {
    const request = readStun(datagram, this.#options.local.password);
    if (request?.kind === 'request') return this.#answer(request, from);
    const remote = this.#remote;
    const pair = this.#pairs.get(keyOf(from.address, from.port));
    if (remote === undefined || pair === undefined) return;
    const answer = readStun(datagram, remote.password);
    if (answer?.kind === 'success' && answer.transaction.equals(pair.transaction)) this.#advance(pair, now);
  }

  /** Sends what is due. @returns false when the peer's consent has expired */
  tick(now: number): boolean {
    const remote = this.#remote;
    if (remote === undefined) return true;
    const selected = this.selected as Pair | undefined;
    if (selected !== undefined) {
      if (now - this.#consentAt > EXPIRY_MS) return false;
      const isAnswered = this.#consentAt >= selected.sentAt;
      if (now - selected.sentAt >= (isAnswered ? CONSENT_MS : RETRY_MS)) this.#ask(selected, remote, now, isAnswered);
      return true;
    }
    if (this.#validAt !== undefined && now - this.#validAt >= BETTER_MS) this.#nominate(now);
    for (const pair of this.#pairs.values()) {
      if (pair.state === 'valid' || now - pair.sentAt < RETRY_MS) continue;
      this.#ask(pair, remote, now, pair.request.length === 0);
    }
    return true;
  }

  #advance(pair: Pair, now: number): void {
    if (pair.state === 'selected') {
      this.#consentAt = now;
    } else if (pair.state === 'nominating') {
      pair.state = 'selected';
      this.#consentAt = now;
      this.#options.onSelected({ address: pair.address, port: pair.port });
    } else if (pair.state === 'checking') {
      pair.state = 'valid';
      this.#validAt ??= now;
      const isBest = [...this.#pairs.values()].every(({ priority }) => priority <= pair.priority);
      if (isBest) this.#nominate(now);
    }
  }

  #nominate(now: number): void {
    const all = [...this.#pairs.values()];
    const remote = this.#remote;
    if (remote === undefined || all.some(({ state }) => state === 'nominating' || state === 'selected')) return;
    const [best] = all.filter(({ state }) => state === 'valid').sort((one, other) => other.priority - one.priority);
    if (best === undefined) return;
    best.state = 'nominating';
    this.#ask(best, remote, now, true);
  }

  /** @param isNew it is another request, not the last one once more */
  #ask(pair: Pair, remote: IceCredentials, now: number, isNew: boolean): void {
    if (isNew) {
      pair.transaction = randomBytes(TRANSACTION_BYTES);
      const message: StunMessage = {
        kind: 'request',
        transaction: pair.transaction,
        username: `${remote.usernameFragment}:${this.#options.local.usernameFragment}`,
        priority: PRIORITY,
        controlling: TIE_BREAKER,
        nominates: pair.state === 'nominating' || pair.state === 'selected',
      };
      pair.request = writeStun(message, remote.password);
    }
    pair.sentAt = now;
    this.#options.send(pair.request, pair);
  }

  #answer({ transaction, username, controlling, priority }: StunMessage, from: IceAddress): void {
    const { local, send, onPeer } = this.#options;
    if (username?.split(':')[0] !== local.usernameFragment) return;
    const isConflict = controlling !== undefined;
    const answer: StunMessage = isConflict
      ? { kind: 'error', transaction, error: ROLE_CONFLICT }
      : { kind: 'success', transaction, mapped: from };
    send(writeStun(answer, local.password), from);
    const key = keyOf(from.address, from.port);
    if (this.#pairs.has(key) || this.#reflexive.has(key) || this.#reflexive.size >= MAX_PAIRS) return;
    this.#reflexive.add(key);
    onPeer({ ...from, priority: priority ?? 0 });
  }
}

function keyOf(address: string, port: number): string {
  return `${address} ${port}`;
}
