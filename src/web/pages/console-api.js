/** Longer than nodes wait for each other. */
const ANSWER_MS = 15_000;

/** An answer of the management API that is no success. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The management API of the server that this page is from. The token is in this object and nowhere else. */
export class Api {
  #authorization;
  /** Called when the token is refused. */
  onRefused = () => {};

  /** @param token `user:password`, or one word */
  constructor(token) {
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
    const response = await fetch(path, {
      method,
      cache: 'no-store',
      credentials: 'omit',
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(ANSWER_MS),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const envelope = parse(text);
    if (response.status === 401) this.onRefused(envelope?.message ?? 'The token is not accepted');
    if (!response.ok)
      throw new ApiError(response.status, envelope?.message ?? `the server answered ${response.status}`);
    return envelope?.response;
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
