import { root } from '../common.js';

/** Longer than nodes wait for each other. */
const ANSWER_MS = 15_000;

/** An answer of the management API that is no success. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** No answer of the management API came. */
export class NoAnswerError extends Error {}

/** On an answer that may lack what a node that did not answer knows. */
const STALE = 'x-kiln-stale';

/** How the credential of a read-only link begins; when it ends follows, in seconds since 1970. */
const READ_ONLY = /^read-only:(\d{1,12})\./;

/**
 * The management API of the server that this page is from. The token, or the credential of a read-only link, is in this
 * object and nowhere else.
 */
export class Api {
  #authorization;
  /** The bearer may look at everything that is no secret, and change nothing. */
  isReadOnly;
  /** When that ends; undefined for a token. */
  expires;
  /** Whether an answer since this was set to false may be incomplete or old. */
  isStale = false;
  /** Called when the token is refused. */
  onRefused = () => {};

  /** @param token `user:password`, or one word */
  constructor(token) {
    const seconds = READ_ONLY.exec(token)?.[1];
    this.isReadOnly = seconds !== undefined;
    this.expires = seconds && new Date(Number(seconds) * 1000);
    const bytes = new TextEncoder().encode(token);
    this.#authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  }

  get(path) {
    return this.call('GET', path);
  }

  /**
   * The `response` of an answer.
   * @throws ApiError with the API's own message; NoAnswerError
   */
  async call(method, path, body) {
    const options = {
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    };
    return parse(await this.#ask(method, path, options, (response) => response.text()))?.response;
  }

  /** What a call answers that is no JSON, such as a picture, as a Blob. @throws as `call` */
  async file(path) {
    const options = { headers: { authorization: this.#authorization } };
    return await this.#ask('GET', path, options, (response) => response.blob());
  }

  /** @param read the body of a success */
  async #ask(method, path, options, read) {
    const { ok, status, headers, body } = await answer(path, { method, ...options }, read);
    if (headers.has(STALE)) this.isStale = true;
    if (ok) return body;
    const message = parse(body)?.message;
    if (status === 401) this.onRefused(message ?? 'The token is not accepted');
    throw new ApiError(status, message ?? `The server answered ${status}`);
  }

  /** Every application of every virtual host: `{ vhost, app }`. */
  async applications() {
    const vhosts = await this.get('/v1/vhosts');
    const apps = await Promise.all(vhosts.map((vhost) => this.get(`${vhostPath(vhost)}/apps`)));
    return vhosts.flatMap((vhost, at) => apps[at].map((app) => ({ vhost, app })));
  }
}

/** @throws NoAnswerError */
async function answer(path, options, read) {
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    const response = await fetch(new URL(path.slice(1), root), {
      cache: 'no-store',
      credentials: 'omit',
      signal,
      ...options,
    });
    const { ok, status, headers } = response;
    return { ok, status, headers, body: ok ? await read(response) : await response.text() };
  } catch {
    throw new NoAnswerError(
      signal.aborted ? `The server did not answer within ${ANSWER_MS / 1000} seconds` : 'The server cannot be reached',
    );
  }
}

export const vhostPath = (vhost) => `/v1/vhosts/${encodeURIComponent(vhost)}`;
export const appPath = ({ vhost, app }) => `${vhostPath(vhost)}/apps/${encodeURIComponent(app)}`;
export const streamPath = ({ vhost, app, stream }) =>
  `${appPath({ vhost, app })}/streams/${encodeURIComponent(stream)}`;

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
