import type { Socket } from 'node:net';
import { hostInUrl } from '../lib/address.ts';
import { Watchdog } from '../lib/watchdog.ts';
import type { Logger } from '../log/log.ts';
import { header, type RtspRequest } from '../protocols/rtsp/message.ts';
import { RtspServerConnection, type RtspAnswer } from '../protocols/rtsp/server-connection.ts';
import { readTransportOffers } from '../protocols/rtsp/transport-offer.ts';
import type { Peer } from '../protocols/tcp.ts';
import { RtspAdmission, type AdmissionOptions } from './admission.ts';
import type { Datagrams } from './datagram-ports.ts';
import type { RtspLink, RtspPart, RtspService } from './part.ts';

/** A service, with its UDP ports. */
export interface Served {
  readonly service: RtspService;
  /** Undefined where it has none. */
  readonly datagrams: Datagrams | undefined;
}

export interface SessionContext extends Pick<AdmissionOptions, 'usersOf' | 'rejected'> {
  readonly log: Logger;
  readonly isSecure: boolean;
  /** Services of the port, at least one. */
  readonly served: readonly Served[];
  readonly onServing: () => void;
  readonly onClose: () => void;
}

/** A client that has set up nothing, and asks for nothing for so long, is disconnected. */
export const ASKS_NOTHING_MS = 10_000;
const OK = 200;
const OWN = ['OPTIONS', 'GET_PARAMETER', 'SET_PARAMETER'];
const SHARED = ['SETUP', 'PAUSE', 'TEARDOWN'];

/**
 * One client of RTSP (RFC 2326), from its first byte to its last. A connection has one session at a time, which ends with it: the
 * client plays or publishes. Closing is idempotent, and logs its reason once.
 */
export class RtspSession {
  readonly #connection: RtspServerConnection;
  readonly #peer: Peer;
  readonly #context: SessionContext;
  readonly #admission: RtspAdmission;
  readonly #gone = new AbortController();
  readonly #log: Logger;
  readonly #public: string;
  #part: { readonly of: RtspService; readonly part: RtspPart } | undefined;
  #silence: Watchdog;

  constructor(socket: Socket, peer: Peer, context: SessionContext) {
    this.#peer = peer;
    this.#context = context;
    this.#log = context.log.child({ remote: `${hostInUrl(peer.remoteAddress)}:${peer.remotePort}` });
    const [first, ...others] = OWN;
    this.#public = [first, ...context.served.flatMap(({ service }) => service.methods), ...SHARED, ...others].join(
      ', ',
    );
    this.#silence = this.#watch(ASKS_NOTHING_MS);
    const { usersOf, rejected } = context;
    this.#admission = new RtspAdmission({
      peer,
      usersOf,
      rejected,
      signal: this.#gone.signal,
      onGuessing: () => this.close('it guesses passwords', 'warn'),
    });
    this.#connection = new RtspServerConnection(socket, {
      request: (request) => this.#request(request),
      media: (channel, data) => {
        this.#silence.heard();
        this.#part?.part.media(channel, data);
      },
      fault: (err) => this.#log.error({ err }, 'the RTSP session failed'),
      end: (reason, level) => this.#end(reason, level),
    });
  }

  /** @param level how the reason is logged */
  close(reason: string, level: 'info' | 'warn' = 'info'): void {
    this.#connection.end(reason, level);
  }

  /** To be called once a second. */
  check(): void {
    this.#part?.part.check();
  }

  #request(request: RtspRequest): RtspAnswer | Promise<RtspAnswer> {
    this.#silence.heard();
    const { method, headers } = request;
    if (header(headers, 'cseq') === undefined) return { status: 400 };
    const unsupported = headers.get('require') ?? headers.get('proxy-require');
    if (unsupported !== undefined) return { status: 551, fields: { Unsupported: unsupported } };
    const isKnown = OWN.includes(method) || SHARED.includes(method) || this.#serviceOf(method) !== undefined;
    if (!isKnown) return { status: 501, fields: { Public: this.#public } };
    const session = header(headers, 'session')?.split(';')[0]?.trim();
    if (session !== undefined && session !== this.#part?.part.session) return { status: 454 };
    if (method === 'OPTIONS') return this.#ok({ Public: this.#public });
    if (method === 'GET_PARAMETER') return this.#ok();
    if (method === 'SET_PARAMETER') return request.body.length === 0 ? this.#ok() : { status: 451 };
    const part = this.#partFor(request);
    return part?.methods[method]?.(request) ?? { status: method === 'TEARDOWN' ? 454 : 455 };
  }

  #ok(fields: RtspAnswer['fields'] = {}): RtspAnswer {
    return { status: OK, fields: { Session: this.#part?.part.session, ...fields } };
  }

  #serviceOf(method: string): Served | undefined {
    return this.#context.served.find(({ service }) => service.methods.includes(method));
  }

  /** Side that a request is for; undefined where the session is in another state. */
  #partFor(request: RtspRequest): RtspPart | undefined {
    const current = this.#part;
    const served =
      this.#serviceOf(request.method) ??
      (request.method === 'SETUP' && current === undefined ? this.#setUpFor(request) : undefined);
    if (served === undefined || served.service === current?.of) return current?.part;
    // nothing of a session remains, when the client begins something else
    if (current?.part.session !== undefined) return undefined;
    current?.part.close('the client asks for something else');
    const part = served.service.open(this.#link(served));
    this.#part = { of: served.service, part };
    return part;
  }

  /** Some players set up tracks without a description. */
  #setUpFor({ headers }: RtspRequest): Served | undefined {
    const { served } = this.#context;
    const isRecord = readTransportOffers(header(headers, 'transport') ?? '').some((offer) => offer.isRecord);
    const direction = isRecord ? 'incoming' : 'outgoing';
    return served.find(({ service }) => service.direction === direction) ?? served[0];
  }

  #link({ datagrams }: Served): RtspLink {
    return {
      peer: this.#peer,
      connection: this.#connection,
      isSecure: this.#context.isSecure,
      datagrams,
      admission: this.#admission,
      signal: this.#gone.signal,
      log: this.#log,
      watch: (ms) => {
        this.#silence.close();
        if (!this.#connection.ended) this.#silence = this.#watch(ms);
      },
      heard: () => this.#silence.heard(),
      serves: this.#context.onServing,
      close: (reason, level) => this.close(reason, level),
    };
  }

  #end(reason: string, severity: 'info' | 'warn'): void {
    this.#silence.close();
    this.#gone.abort();
    const { part } = this.#part ?? {};
    const log = part?.log ?? this.#log;
    const { level: usual, fields } = part?.end ?? { level: 'debug' as const, fields: {} };
    const level = severity === 'info' ? usual : severity;
    part?.close(reason);
    log[level](fields, `RTSP session closed: ${reason}`);
    this.#context.onClose();
  }

  #watch(ms: number): Watchdog {
    return new Watchdog(ms, () => {
      if (this.#part?.part.mayBeSilent === true) this.#silence = this.#watch(ms);
      else this.close(`neither requests nor packets within ${ms} ms`);
    }).unref();
  }
}
