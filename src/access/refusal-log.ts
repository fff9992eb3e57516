import { hostInUrl } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import { PROTOCOL_NAMES, type AccessRequest } from './request.ts';

/** A rejected client, as far as it is known. */
export interface Rejected {
  /** Undefined where it is not known yet. */
  readonly direction?: AccessRequest['direction'];
  /** `http` on a port with several protocols, while the requested one is not known yet. */
  readonly protocol: AccessRequest['protocol'] | 'http';
  readonly address: string;
  readonly port?: number;
  /** Requested names; undefined where they cannot be read. */
  readonly asked?: string;
}

/** A client that was rejected as a publisher or viewer. */
export type Refused = Rejected & Pick<AccessRequest, 'direction' | 'protocol'>;

const NAMES: Readonly<Record<Rejected['protocol'], string>> = { ...PROTOCOL_NAMES, http: 'HTTP' };
const CLIENTS = { incoming: 'publisher', outgoing: 'viewer' } as const;
/** Time for which a repeated rejection is counted instead of logged. */
const WINDOW_MS = 60_000;
/** Lines within that time, for one address and for all; also the number of addresses that are remembered. */
const MAX_LINES_OF_ONE = 5;
const MAX_LINES = 200;
/** Characters of a reason, which may have names from the request, that are logged. */
const MAX_REASON = 500;
/** Characters of requested names that are logged. */
const MAX_ASKED = 300;

interface Entry {
  /** Logged lines. */
  readonly lines: Set<string>;
  /** Rejections that were not logged. */
  more: number;
}

/** Logs rejected clients: once per address and reason, and after that how many more, once a minute. */
export class RefusalLog {
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  #lines = 0;
  #others = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(rejected: Rejected, reason: string): void {
    const { direction, protocol, address, port, asked } = rejected;
    const client = direction === undefined ? 'client' : CLIENTS[direction];
    const line = `${NAMES[protocol]} ${client} refused: ${reason.slice(0, MAX_REASON)}`;
    const entry = this.#entries.get(address) ?? { lines: new Set<string>(), more: 0 };
    const isKnown = entry.lines.has(`${line} ${asked}`) || entry.lines.size >= MAX_LINES_OF_ONE;
    this.#timer ??= setTimeout(() => this.#turn(), WINDOW_MS).unref();
    if (isKnown) {
      entry.more++;
      return;
    }
    if (this.#lines >= MAX_LINES || (entry.lines.size === 0 && this.#entries.size >= MAX_LINES)) {
      this.#others++;
      return;
    }
    this.#lines++;
    this.#entries.set(address, entry);
    entry.lines.add(`${line} ${asked}`);
    this.#log.warn(
      { event: 'client.refused', remote: port === undefined ? address : `${hostInUrl(address)}:${port}`, asked },
      line,
    );
  }

  /** Logs what was counted. Idempotent. */
  close(): void {
    clearTimeout(this.#timer);
    this.#turn();
  }

  /** Keeps the addresses that were rejected again. */
  #turn(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lines = 0;
    for (const [remote, entry] of this.#entries) {
      if (entry.more === 0) this.#entries.delete(remote);
      else this.#log.warn({ remote, count: entry.more }, 'more clients from this address were refused');
      entry.more = 0;
    }
    if (this.#others > 0) this.#log.warn({ count: this.#others }, 'clients from other addresses were refused');
    this.#others = 0;
    if (this.#entries.size > 0) this.#timer = setTimeout(() => this.#turn(), WINDOW_MS).unref();
  }
}

/** The client of a request. Its port is known unless it came by a proxy. */
export function refusedOf(request: AccessRequest): Refused {
  const { direction, protocol, client, vhostName, hostName, app, stream, playlist } = request;
  const { realAddress: address, address: direct, port } = client;
  const asked = [vhostName ?? hostName, app, stream, ...(playlist === undefined ? [] : [playlist])].join('/');
  return { direction, protocol, address, asked: asked.slice(0, MAX_ASKED), ...(address === direct && { port }) };
}
