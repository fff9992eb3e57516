import type { AccessRequest } from '../access/request.ts';
import type { ApplicationConfig } from '../config/model.ts';
import { KilnError } from '../errors.ts';
import { CredentialCheck, readBasic } from '../protocols/rtsp/credentials.ts';
import { header, type RtspRequest } from '../protocols/rtsp/message.ts';
import type { RequestUrl } from '../protocols/rtsp/request-url.ts';
import type { RtspAnswer } from '../protocols/rtsp/server-connection.ts';
import type { Peer } from '../protocols/tcp.ts';
import { requestOf, type RtspAccess } from './request.ts';

export type Users = NonNullable<ApplicationConfig['users']>['user'];

export interface AdmissionOptions {
  readonly peer: Peer;
  readonly signal: AbortSignal;
  /** Users of the application that a URL names; undefined where none is asked for a password. */
  readonly usersOf: (url: RequestUrl) => Users | undefined;
  /** Reports a client that is rejected before its admission, or in spite of it. */
  readonly rejected: (request: AccessRequest, reason: string) => void;
  /** Too many credentials were wrong. */
  readonly onGuessing: () => void;
}

/** The grant of a client, or the answer that rejects its request. */
export type Admitted<G> = { readonly grant: G; readonly asked: RtspAccess } | { readonly answer: RtspAnswer };

type Direction = AccessRequest['direction'];

const REALM = 'Kiln';
const MAX_WRONG = 5;
const UNAUTHORIZED = 401;
/** Statuses of HTTP that RTSP has as well; others say that the server cannot serve a client now, or does not want to. */
const SAME = new Set([400, 403, 404, 406, 500, 503]);
const UNAVAILABLE = new Set([429, 499]);
/** A password that is the query of a signed URL. */
const QUERY = /^\??[^=&\s]+=[^\s]*$/;

/** Authenticates and admits the client of one connection. */
export class RtspAdmission {
  readonly #options: AdmissionOptions;
  readonly #check = new CredentialCheck(REALM);
  #wrong = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** @param ask admits the client, once it is authenticated. @throws KilnError */
  async admit<G>(
    request: RtspRequest,
    url: RequestUrl,
    direction: Direction,
    ask: (asked: RtspAccess) => Promise<G>,
  ): Promise<Admitted<G>> {
    const { peer, signal, usersOf } = this.#options;
    const field = header(request.headers, 'authorization');
    const userAgent = header(request.headers, 'user-agent');
    const users = usersOf(url);
    const client = { peer, userAgent, user: undefined, policy: undefined };
    if (users !== undefined) {
      if (field === undefined) return this.#challenge();
      const passwordOf = (name: string): string | undefined => users.find((one) => one.name === name)?.password;
      const user = this.#check.userOf(field, request.method, passwordOf);
      if (user !== undefined) return this.#admit(requestOf(url, { ...client, user }, signal), ask);
      this.report(
        requestOf(url, client, signal),
        direction,
        'its credentials are not those of a user of the application',
      );
      if (++this.#wrong >= MAX_WRONG) this.#options.onGuessing();
      return this.#challenge();
    }
    const basic = field === undefined ? undefined : readBasic(field);
    const policy = basic !== undefined && QUERY.test(basic.password) ? basic.password.replace(/^\?/, '') : undefined;
    const isAsked = basic === undefined;
    return this.#admit(requestOf(url, { ...client, user: basic?.user || undefined, policy }, signal), ask, isAsked);
  }

  /** Reports a client that is rejected for a reason that admission does not know. */
  report(asked: RtspAccess, direction: Direction, reason: string): void {
    this.#options.rejected({ ...asked, direction, protocol: 'rtsp' }, reason);
  }

  /** @param isAsked a client that is denied is asked for a password, which may be the query of a signed URL */
  async #admit<G>(asked: RtspAccess, ask: (asked: RtspAccess) => Promise<G>, isAsked = false): Promise<Admitted<G>> {
    try {
      return { grant: await ask(asked), asked };
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      if (error.status === UNAUTHORIZED && isAsked)
        return { answer: { status: UNAUTHORIZED, fields: { 'WWW-Authenticate': this.#check.basicChallenge } } };
      return { answer: rejection(error) };
    }
  }

  #challenge(): { readonly answer: RtspAnswer } {
    return { answer: { status: UNAUTHORIZED, fields: { 'WWW-Authenticate': this.#check.challenges } } };
  }
}

/** Answer for an error of admission. */
export function rejection({ status }: KilnError): RtspAnswer {
  if (SAME.has(status)) return { status };
  return { status: UNAVAILABLE.has(status) ? 503 : 403 };
}
