import { root } from '../common.js';

/** @import { LoggedEvent, NodeInfo, StreamSummary } from '../answers.ts' */

/**
 * @typedef {{ vhost: string, app: string }} AppName
 * @typedef {AppName & { stream: string }} StreamName
 */

/** Longer than nodes wait for each other. */
const ANSWER_MS = 15_000;

/** An answer of the management API that is no success. */
export class ApiError extends Error {
  status;

  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** No answer of the management API came. */
export class NoAnswerError extends Error {}

/** Set on an answer that may lack the state of a node that did not answer. */
const STALE = 'x-kiln-stale';

/** Start of the credential of a read-only link; its expiry follows, in seconds since 1970. */
const READ_ONLY = /^read-only:(\d{1,12})\./;

/**
 * The management API of the server that this page is from. The token, or the credential of a read-only link, is in this
 * object and nowhere else.
 */
export class Api {
  #authorization;
  /** Whether the bearer may look at everything that is no secret, and change nothing. */
  isReadOnly;
  /** When a read-only credential expires; undefined for a token. */
  expires;
  /** Whether an answer since this was set to false may be incomplete or old. */
  isStale = false;
  /**
   * Called when the token is rejected.
   * @type {(message: string) => void}
   */
  onRefused = () => {};

  /** @param {string} token `user:password`, or one word */
  constructor(token) {
    const seconds = READ_ONLY.exec(token)?.[1];
    this.isReadOnly = seconds !== undefined;
    this.expires = seconds === undefined ? undefined : new Date(Number(seconds) * 1000);
    const bytes = new TextEncoder().encode(token);
    this.#authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  }

  /**
   * Calls GET.
   * @template T
   * @param {string} path
   * @returns {Promise<T>} as `call`
   */
  get(path) {
    return this.call('GET', path);
  }

  /**
   * Calls the API.
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {string | object} [body] JSON, or an object to write as JSON
   * @returns {Promise<T>} `response` of the answer
   * @throws {ApiError} with the API's own message; NoAnswerError
   */
  async call(method, path, body) {
    const options = {
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    };
    return parse(await this.#ask(path, { method, ...options }, (response) => response.text()))?.response;
  }

  /**
   * Fetches an answer that is no JSON, such as an image.
   * @param {string} path
   * @throws as `call`
   */
  async file(path) {
    const options = { headers: { authorization: this.#authorization } };
    return await this.#ask(path, { method: 'GET', ...options }, (response) => response.blob());
  }

  /**
   * @template T
   * @param {string} path
   * @param {RequestInit} options
   * @param {(response: Response) => Promise<T>} read the body of a success
   */
  async #ask(path, options, read) {
    const answered = await answer(path, options, read);
    const { status, headers } = answered;
    if (headers.has(STALE)) this.isStale = true;
    if ('body' in answered) return answered.body;
    const message = parse(answered.failure)?.message;
    if (status === 401) this.onRefused(message ?? 'The token is not accepted');
    throw new ApiError(status, message ?? `The server answered ${status}`);
  }

  /** @returns {Promise<NodeInfo[]>} */
  nodes() {
    return this.get('/v1/cluster/nodes');
  }

  /**
   * Lists the live streams of all nodes.
   * @param {StreamName} [one] one stream only
   * @returns {Promise<StreamSummary[]>}
   */
  streams(one) {
    return this.get(`/v1/cluster/streams${one === undefined ? '' : `?${new URLSearchParams(one)}`}`);
  }

  /**
   * Lists the newest main events of all nodes.
   * @param {number} count
   * @returns {Promise<LoggedEvent[]>}
   */
  events(count) {
    return this.get(`/v1/cluster/events?count=${count}`);
  }

  /** @returns {Promise<string[]>} names */
  vhosts() {
    return this.get('/v1/vhosts');
  }

  /**
   * Lists the applications of every virtual host.
   * @returns {Promise<AppName[]>}
   */
  async applications() {
    const lists = (await this.vhosts()).map(async (vhost) => {
      /** @type {string[]} */
      const apps = await this.get(`${vhostPath(vhost)}/apps`);
      return apps.map((app) => ({ vhost, app }));
    });
    return (await Promise.all(lists)).flat();
  }
}

/**
 * @template T
 * @param {string} path
 * @param {RequestInit} options
 * @param {(response: Response) => Promise<T>} read
 * @returns {Promise<{ status: number, headers: Headers } & ({ body: T } | { failure: string })>}
 * @throws {NoAnswerError}
 */
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
    return ok ? { status, headers, body: await read(response) } : { status, headers, failure: await response.text() };
  } catch {
    throw new NoAnswerError(
      signal.aborted ? `The server did not answer within ${ANSWER_MS / 1000} seconds` : 'The server cannot be reached',
    );
  }
}

/** @param {string} vhost */
export const vhostPath = (vhost) => `/v1/vhosts/${encodeURIComponent(vhost)}`;
/** @param {AppName} application */
export const appPath = ({ vhost, app }) => `${vhostPath(vhost)}/apps/${encodeURIComponent(app)}`;
/** @param {StreamName} stream */
export const streamPath = ({ vhost, app, stream }) =>
  `${appPath({ vhost, app })}/streams/${encodeURIComponent(stream)}`;

/** @param {unknown} text */
function parse(text) {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
