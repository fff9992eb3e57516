import { percentDecoded } from '../../lib/percent.ts';
import { cutsCredentials } from '../../protocols/outbound/fragment.ts';
import { parseHttpUrl } from '../../protocols/outbound/http-request.ts';

/** An endpoint of WHIP or WHEP, as it is asked over HTTP. */
export interface EndpointUrl {
  /** With user and password of Basic credentials, if there are any. */
  readonly url: URL;
  /** Bearer token. */
  readonly token: string | undefined;
}

/**
 * Reads `whep://[token@]host[:port]/path[?query]` for HTTP, or with `wheps` for HTTPS; the same of `whip`. A user with a password is
 * one of Basic instead of a token.
 * @returns undefined for anything else
 */
export function parseEndpointUrl(href: string, scheme: 'whep' | 'whip'): EndpointUrl | undefined {
  const [, name = '', rest = ''] = /^([a-z]+)(:\/\/.*)$/is.exec(href) ?? [];
  const plain = { [scheme]: 'http', [`${scheme}s`]: 'https' }[name.toLowerCase()];
  if (plain === undefined || cutsCredentials(href)) return undefined;
  const url = parseHttpUrl(plain + rest);
  if (url === undefined || url.hash !== '') return undefined;
  if (url.username === '' || url.password !== '') return { url, token: undefined };
  const token = percentDecoded(url.username);
  url.username = '';
  return isToken(token) ? { url, token } : undefined;
}

/** Whether a text can be sent as a bearer token (RFC 6750 section 2.1, and what servers give out besides). */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
