import { RtspError } from './error.ts';
import { header, type RtspResponse } from './message.ts';
import { parseRtspUrl, type RtspUrl } from './url.ts';

const MAX_REDIRECTS = 4;
const REDIRECTS = new Set([301, 302, 303, 305, 307]);

/** The server sends its clients elsewhere (RFC 2326 section 11.3). */
export class RtspRedirect extends RtspError {
  readonly location: string;

  constructor(location: string) {
    super('the server redirects its clients');
    this.location = location;
  }
}

/** @throws RtspRedirect when the answer is one */
export function checkMoved({ status, headers }: RtspResponse): void {
  const location = header(headers, 'location');
  if (REDIRECTS.has(status) && location !== undefined) throw new RtspRedirect(location);
}

/** Where a stream is looked for, from the first URL on. */
export class RtspTarget {
  #url: RtspUrl;
  #redirects = 0;

  /** @throws RtspError */
  constructor(href: string) {
    this.#url = parsed(href);
  }

  get url(): RtspUrl {
    return this.#url;
  }

  /**
   * Who the user is goes to another server only where the new URL says so.
   * @throws what is no redirect, or one that is not followed
   */
  follow(error: unknown): void {
    if (!(error instanceof RtspRedirect)) throw error;
    if (++this.#redirects > MAX_REDIRECTS) throw new RtspError('the server redirects its clients too often');
    const from = this.#url;
    const to = parsed(error.location);
    const isSame = to.host === from.host && to.port === from.port;
    const known = isSame && to.user === undefined ? { user: from.user, password: from.password } : {};
    this.#url = { ...to, ...known, transport: to.transport ?? from.transport };
  }
}

function parsed(href: string): RtspUrl {
  const url = parseRtspUrl(href);
  if (url === undefined) throw new RtspError('not an RTSP URL');
  return url;
}
