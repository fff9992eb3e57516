import { request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { hostFromUrl } from '../../lib/address.ts';
import { percentDecoded } from '../../lib/percent.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { dial } from './dial.ts';
import { dialTls } from './dial-tls.ts';
import type { OutboundGuard } from './guard.ts';
import { shownUrl } from './shown.ts';

export interface HttpAnswer {
  /** Paused: the caller takes the body, or destroys it. */
  readonly response: IncomingMessage;
  readonly socket: Socket;
  /** Where it came from, after redirects. */
  readonly url: URL;
}

export interface HttpRequestOptions {
  /** GET unless given. */
  readonly method?: 'POST' | 'DELETE';
  readonly accept: string;
  /** Sent whole with the request. */
  readonly body?: string;
  /** Further headers for a URL, which redirects may have changed. */
  readonly headersFor?: (url: URL) => Readonly<Record<string, string>>;
  /** Called with each answer, those that lead elsewhere included. */
  readonly onAnswer?: (url: URL, response: IncomingMessage) => void;
  /** A redirect from `https:` leads to `https:` alone. */
  readonly staysSecure?: boolean;
  /** Ends the request, without an answer. */
  readonly signal?: AbortSignal;
}

/** Time for the head of an answer, once connected. */
const ANSWER_MS = 10_000;
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirects by which the method and the body stay (RFC 9110 section 15.4); clients make GET of the others. */
const KEEPING: ReadonlySet<number> = new Set([307, 308]);
const MAX_LENGTH = 8192;
const CLOSED = 'it closed the connection without an answer';

/**
 * Reads a URL of `http:` or `https:`.
 * @returns undefined for any other text, or one that cannot be sent as it is
 */
export function parseHttpUrl(href: string, base?: URL): URL | undefined {
  if (href.length > MAX_LENGTH || /[\s\x00-\x1f\x7f]/.test(href) || !URL.canParse(href, base?.href)) return undefined;
  const url = new URL(href, base?.href);
  return (url.protocol === 'http:' || url.protocol === 'https:') && url.port !== '0' ? url : undefined;
}

/**
 * Reads a URL that a resource leads to, as `parseHttpUrl` does. The user and the password of the resource stay with its origin
 * (RFC 9110 section 15.4).
 */
export function parseLinkedUrl(href: string, base: URL): URL | undefined {
  const url = parseHttpUrl(href, base);
  if (url?.origin === base.origin && url.username === '') [url.username, url.password] = [base.username, base.password];
  return url;
}

/**
 * Sends a request to a server that the guard allows, on a connection of its own, and follows redirects (RFC 9110 section 15.4), each
 * of which the guard has to allow. A user and a password in the URL are sent as Basic credentials, but to no other
 * origin. A server's certificate is verified.
 * @throws the guard's error when there is no answer
 */
export async function httpRequest(guard: OutboundGuard, target: URL, options: HttpRequestOptions): Promise<HttpAnswer> {
  let url = target;
  for (let redirects = 0; ; redirects++) {
    const answer = await ask(guard, url, options);
    options.onAnswer?.(url, answer.response);
    const { statusCode = 0, headers } = answer.response;
    const isRedirect = (options.method === undefined ? REDIRECTS : KEEPING).has(statusCode);
    if (!isRedirect || headers.location === undefined) return answer;
    answer.socket.destroy();
    const next = parseLinkedUrl(headers.location, url);
    if (next === undefined) throw guard.error(`${shownUrl(url.href)} leads to something else than a URL of HTTP`);
    if (options.staysSecure === true && url.protocol === 'https:' && next.protocol !== 'https:')
      throw guard.error(`${shownUrl(url.href)} leads to a URL without TLS`);
    if (redirects === MAX_REDIRECTS) throw guard.error(`${shownUrl(target.href)} leads to other URLs without end`);
    url = next;
  }
}

async function ask(guard: OutboundGuard, url: URL, options: HttpRequestOptions): Promise<HttpAnswer> {
  const { method = 'GET', accept, body, headersFor, signal } = options;
  const secure = url.protocol === 'https:';
  const host = hostFromUrl(url.hostname);
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const socket = await (secure ? dialTls : dial)(guard, host, port, { signal });
  const asked = request({
    createConnection: () => socket,
    method,
    path: url.pathname + url.search,
    headers: {
      Host: url.host,
      Accept: accept,
      'User-Agent': 'Kiln',
      ...lengthOf(body),
      ...authorization(url),
      ...headersFor?.(url),
    },
    signal,
  });
  const late = new Watchdog(ANSWER_MS, () => asked.destroy(new Error('it did not answer in time')));
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.once('response', resolve).on('error', reject).end(body);
      // an answer that switches protocols ends the request without an error
      asked.once('close', () => reject(new Error(CLOSED)));
    });
    return { response, socket, url };
  } catch (error) {
    socket.destroy();
    throw guard.error(`${shownUrl(url.href)}: ${reasonOf(error as NodeJS.ErrnoException)}`);
  } finally {
    late.close();
  }
}

function lengthOf(body: string | undefined): { readonly 'Content-Length'?: number } {
  return body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  return code === 'ECONNRESET' ? CLOSED : message;
}

function authorization({ username, password }: URL): { readonly Authorization?: string } {
  if (username === '') return {};
  const credentials = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}
