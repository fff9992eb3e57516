import { randomBytes, timingSafeEqual } from 'node:crypto';
import { hashOf, parseChallenges } from './authorization.ts';

/** Name and password of Basic credentials (RFC 7617), where the password is not compared yet. */
export interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/** Returns the password of a user; undefined where there is no such user. */
export type PasswordOf = (user: string) => string | undefined;

/** Challenges of one connection, and the check of the credentials that answer them. A nonce is good on its connection alone. */
export class CredentialCheck {
  readonly #realm: string;
  readonly #nonce = randomBytes(16).toString('hex');

  constructor(realm: string) {
    this.#realm = realm;
  }

  /**
   * Challenges, the strongest first: Digest with SHA-256 and MD5 (RFC 7616), Basic. Clients that know one algorithm alone take the
   * last challenge of a scheme, which is MD5.
   */
  get challenges(): readonly string[] {
    const digest = (algorithm: string): string =>
      `Digest realm="${this.#realm}", qop="auth", nonce="${this.#nonce}", algorithm=${algorithm}`;
    return [digest('SHA-256'), digest('MD5'), this.basicChallenge];
  }

  get basicChallenge(): string {
    return `Basic realm="${this.#realm}"`;
  }

  /**
   * Checks the credentials of a request.
   * @returns the user's name; undefined where the credentials are not those of a user, or of another challenge
   */
  userOf(field: string, method: string, passwordOf: PasswordOf): string | undefined {
    const basic = readBasic(field);
    if (basic !== undefined) {
      const password = passwordOf(basic.user);
      return isEqual(basic.password, password) ? basic.user : undefined;
    }
    const [given] = parseChallenges(field);
    if (given?.scheme !== 'digest') return undefined;
    const {
      username = '',
      realm,
      nonce,
      uri = '',
      response = '',
      algorithm,
      qop,
      nc = '',
      cnonce = '',
    } = given.parameters;
    if (realm !== this.#realm || nonce !== this.#nonce || !isKnown(algorithm)) return undefined;
    const password = passwordOf(username);
    const hash = hashOf(algorithm);
    const secret = hash(`${username}:${realm}:${password ?? ''}`);
    const middle = qop === undefined ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`;
    const expected = hash(`${secret}:${middle}:${hash(`${method}:${uri}`)}`);
    return isEqual(response.toLowerCase(), password === undefined ? undefined : expected) ? username : undefined;
  }
}

/** Reads Basic credentials; undefined for anything else. */
export function readBasic(field: string): BasicCredentials | undefined {
  const found = /^Basic +([\w+/-]+=*)\s*$/i.exec(field);
  if (found === null) return undefined;
  const text = Buffer.from(found[1] as string, 'base64').toString();
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

function isKnown(algorithm = 'MD5'): boolean {
  return ['MD5', 'SHA-256'].includes(algorithm.toUpperCase());
}

/** Compares in a time that shows nothing of the expected text. */
function isEqual(given: string, expected: string | undefined): boolean {
  const hash = hashOf('SHA-256');
  return timingSafeEqual(Buffer.from(hash(given)), Buffer.from(hash(expected ?? ''))) && expected !== undefined;
}
