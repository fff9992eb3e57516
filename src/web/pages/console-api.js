/** Longer than nodes wait for each other. */
const ANSWER_MS = 15_000;

/** An answer of the management API that is no success. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

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
   * @throws ApiError with the API's own message; TypeError when the server cannot be reached
   */
  async call(method, path, body) {
    const response = await this.#ask(method, path, {
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return parse(await response.text())?.response;
  }

  /** What a call answers that is no JSON, such as a picture, as a Blob. @throws as `call` */
  async file(path) {
    const response = await this.#ask('GET', path, { headers: { authorization: this.#authorization } });
    return await response.blob();
  }

  async #ask(method, path, options) {
    const response = await fetch(path, {
      method,
      cache: 'no-store',
      credentials: 'omit',
      signal: AbortSignal.timeout(ANSWER_MS),
      ...options,
    });
    if (response.ok) return response;
    const message = parse(await response.text())?.message;
    if (response.status === 401) this.onRefused(message ?? 'The token is not accepted');
    throw new ApiError(response.status, message ?? `the server answered ${response.status}`);
  }

  /** Every application of every virtual host: `{ vhost, app }`. */
  async applications() {
    const vhosts = await this.get('/v1/vhosts');
    const apps = await Promise.all(vhosts.map((vhost) => this.get(`${vhostPath(vhost)}/apps`)));
    return vhosts.flatMap((vhost, at) => apps[at].map((app) => ({ vhost, app })));
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
