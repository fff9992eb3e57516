import { Authorization } from './authorization.ts';
import { RtspError } from './error.ts';
import { header, type RtspResponse } from './message.ts';
import { parseRtspUrl, type MediaTransport, type RtspUrl } from './url.ts';

const MAX_REDIRECTS = 4;
const REDIRECTS = new Set([301, 302, 303, 305, 307]);

/** The server redirects its clients (RFC 2326 section 11.3). */
export class RtspRedirect extends RtspError {
  readonly location: string;

  constructor(location: string) {
    super('the server redirects its clients');
    this.location = location;
  }
}

/** Requires another connection to the same server. */
export class RtspAgain extends RtspError {
  /** Transport of media over that connection; undefined: as before. */
  readonly transport: MediaTransport | undefined;

  /** @param message the error text, if no other connection is made */
  constructor(message: string, status?: number, transport?: MediaTransport) {
    super(message, status);
    this.transport = transport;
  }
}

/** @throws RtspRedirect when the answer is a redirect */
export function checkMoved({ status, headers }: RtspResponse): void {
  const location = header(headers, 'location');
  if (REDIRECTS.has(status) && location !== undefined) throw new RtspRedirect(location);
}

/** Current URL of a stream after redirects, and state that one connection leaves to the next. */
export class RtspTarget {
  #url: RtspUrl;
  /** Authorization for the server of the current URL, kept between connections. */
  #authorization: Authorization | undefined;
  #redirects = 0;
  #isAskedAgain = false;
  /** Reason why media cannot come in the connection of the requests. */
  #tcpRefusal: string | undefined;

  /** @throws RtspError */
  constructor(href: string) {
    this.#url = parsed(href);
    this.#authorization = authorizationOf(this.#url);
  }

  get url(): RtspUrl {
    return this.#url;
  }

  get authorization(): Authorization | undefined {
    return this.#authorization;
  }

  /**
   * Follows a redirect, or a demand for another connection. Credentials go to another server only where the new URL has them.
   * @throws the error, when it is neither, or is not followed
   */
  follow(error: unknown): void {
    if (error instanceof RtspRedirect) this.#redirect(error);
    else if (error instanceof RtspAgain) this.#again(error);
    else throw this.#explained(error);
  }

  #redirect({ location }: RtspRedirect): void {
    if (++this.#redirects > MAX_REDIRECTS) throw new RtspError('the server redirects its clients too often');
    const from = this.#url;
    const to = parsed(location);
    const isSame = to.host === from.host && to.port === from.port;
    const known = isSame && to.user === undefined ? { user: from.user, password: from.password } : {};
    this.#url = { ...to, ...known, transport: to.transport ?? from.transport };
    this.#authorization = authorizationOf(this.#url);
  }

  #again(error: RtspAgain): void {
    if (error.transport !== undefined) {
      if (this.#url.transport !== undefined) throw this.#explained(error);
      this.#tcpRefusal = error.message;
      this.#url = { ...this.#url, transport: error.transport };
      return;
    }
    if (this.#isAskedAgain) throw error;
    this.#isAskedAgain = true;
  }

  /** Adds the reason why the previous transport failed. */
  #explained(error: unknown): unknown {
    if (this.#tcpRefusal === undefined || !(error instanceof RtspError) || error.status === undefined) return error;
    return new RtspError(`${error.message}; before that, ${this.#tcpRefusal}`, error.status);
  }
}

function authorizationOf({ user, password }: RtspUrl): Authorization | undefined {
  return user === undefined ? undefined : new Authorization(user, password);
}

function parsed(href: string): RtspUrl {
  const url = parseRtspUrl(href);
  if (url === undefined) throw new RtspError('not an RTSP URL');
  return url;
}
