import type { SessionGrant } from '../../access/access.ts';
import type { PlayRequest } from '../../access/request.ts';
import type { ApplicationConfig } from '../../config/model.ts';
import { KilnError } from '../../errors.ts';
import { CredentialCheck, readBasic } from '../../protocols/rtsp/credentials.ts';
import { header, type RtspRequest } from '../../protocols/rtsp/message.ts';
import type { RequestUrl } from '../../protocols/rtsp/request-url.ts';
import type { RtspAnswer } from '../../protocols/rtsp/server-connection.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { requestOf } from './request.ts';

export type Users = NonNullable<ApplicationConfig['users']>['user'];

export interface AdmissionOptions<Found> {
  readonly peer: Peer;
  readonly signal: AbortSignal;
  /** Users of the application that a URL names; undefined where none is asked for a password. */
  readonly usersOf: (url: RequestUrl) => Users | undefined;
  readonly admit: (request: PlayRequest) => Promise<SessionGrant<Found>>;
  /** Reports credentials that are not those of a user. */
  readonly rejected: (request: PlayRequest, reason: string) => void;
  /** Too many credentials were wrong. */
  readonly onGuessing: () => void;
}

const REALM = 'Kiln';
const MAX_WRONG = 5;
const UNAUTHORIZED = 401;
/** Statuses of HTTP that RTSP has as well; others say that the server cannot serve a client now, or does not want to. */
const SAME = new Set([400, 403, 404, 406, 500, 503]);
const UNAVAILABLE = new Set([429, 499]);
/** A password that is the query of a signed URL. */
const QUERY = /^\??[^=&\s]+=[^\s]*$/;

/** Authenticates and admits the client of one connection. */
export class RtspAdmission<Found> {
  readonly #options: AdmissionOptions<Found>;
  readonly #check = new CredentialCheck(REALM);
  #wrong = 0;

  constructor(options: AdmissionOptions<Found>) {
    this.#options = options;
  }

  /** @returns the grant, or the answer that rejects the request */
  async admit(
    request: RtspRequest,
    url: RequestUrl,
  ): Promise<{ readonly grant: SessionGrant<Found> } | { readonly answer: RtspAnswer }> {
    const { peer, signal, usersOf, admit, rejected } = this.#options;
    const field = header(request.headers, 'authorization');
    const userAgent = header(request.headers, 'user-agent');
    const users = usersOf(url);
    const client = { peer, userAgent, user: undefined, policy: undefined };
    if (users !== undefined) {
      if (field === undefined) return this.#challenge();
      const passwordOf = (name: string): string | undefined => users.find((one) => one.name === name)?.password;
      const user = this.#check.userOf(field, request.method, passwordOf);
      if (user === undefined) {
        rejected(requestOf(url, client, signal), 'its credentials are not those of a user of the application');
        if (++this.#wrong >= MAX_WRONG) this.#options.onGuessing();
        return this.#challenge();
      }
      return this.#admit(requestOf(url, { ...client, user }, signal), admit);
    }
    const basic = field === undefined ? undefined : readBasic(field);
    const policy = basic !== undefined && QUERY.test(basic.password) ? basic.password.replace(/^\?/, '') : undefined;
    const isAsked = basic === undefined;
    return this.#admit(requestOf(url, { ...client, user: basic?.user || undefined, policy }, signal), admit, isAsked);
  }

  /** @param isAsked a client that is denied is asked for a password, which may be the query of a signed URL */
  async #admit(
    request: PlayRequest,
    admit: AdmissionOptions<Found>['admit'],
    isAsked = false,
  ): Promise<{ readonly grant: SessionGrant<Found> } | { readonly answer: RtspAnswer }> {
    try {
      return { grant: await admit(request) };
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
