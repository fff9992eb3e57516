import { createHash, randomBytes } from 'node:crypto';

/** One challenge of a WWW-Authenticate field (RFC 7235 section 2.1). */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Names of OpenSSL by those of RFC 7616 section 6.1, weakest first. */
const HASHES: Readonly<Record<string, string>> = { md5: 'md5', 'sha-256': 'sha256', 'sha-512-256': 'sha512-256' };
/** Supported values of `qop`, the preferred one first. They differ in a hash of the body. */
const QOPS = ['auth', 'auth-int'] as const;
/** Limit for a server's challenge, in characters. */
const MAX_FIELD = 4096;
/** Limit of schemes, and of characters of each, in an error text. */
const MAX_NAMED = 4;
const MAX_WORDS = 200;
/** A scheme, or a parameter of the one before. */
const TOKEN = /([A-Za-z][\w-]*)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*)))?\s*,?\s*/y;

/** Answers the challenges of a server: Digest (RFC 7616; RFC 2069 where it offers no `qop`), else Basic (RFC 7617). */
export class Authorization {
  readonly #user: string;
  readonly #password: string;
  #challenge: Challenge | undefined;
  #offered: readonly Challenge[] = [];
  #count = 0;

  constructor(user: string, password: string) {
    this.#user = user;
    this.#password = password;
  }

  /**
   * Takes the challenges of an answer that rejected a request.
   * @returns false when none can be met, or none but one that was met already
   */
  take(fields: readonly string[]): boolean {
    this.#offered = fields.flatMap(parseChallenges);
    const [best] = this.#offered.filter(isMet).sort((a, b) => strength(b) - strength(a));
    if (best === undefined) return false;
    const known = this.#challenge;
    const isSame =
      known !== undefined && known.scheme === best.scheme && known.parameters['nonce'] === best.parameters['nonce'];
    if (isSame && best.parameters['stale']?.toLowerCase() !== 'true') return false;
    this.#challenge = best;
    this.#count = 0;
    return true;
  }

  /** Challenges that could not be met, as `Digest algorithm=SHA-512, NTLM`; undefined where one of them could be met. */
  get unmet(): string | undefined {
    if (this.#offered.length === 0 || this.#offered.some(isMet)) return undefined;
    return this.#offered.slice(0, MAX_NAMED).map(named).join(', ').slice(0, MAX_WORDS);
  }

  /** Authorization field for one request; undefined before any challenge. */
  field(method: string, uri: string, body = ''): string | undefined {
    if (this.#challenge === undefined) return undefined;
    if (this.#challenge.scheme === 'basic')
      return `Basic ${Buffer.from(`${this.#user}:${this.#password}`).toString('base64')}`;
    return this.#digest(method, uri, body, this.#challenge.parameters);
  }

  #digest(
    method: string,
    uri: string,
    body: string,
    { realm = '', nonce = '', opaque, algorithm, qop }: Challenge['parameters'],
  ): string {
    const hash = hashOf(algorithm);
    const own = randomBytes(8).toString('hex');
    const count = (++this.#count).toString(16).padStart(8, '0');
    const secret = hash(`${this.#user}:${realm}:${this.#password}`);
    const one = isSession(algorithm) ? hash(`${secret}:${nonce}:${own}`) : secret;
    const protection = protectionOf(qop);
    const two = hash(protection === 'auth-int' ? `${method}:${uri}:${hash(body)}` : `${method}:${uri}`);
    const middle = protection === undefined ? nonce : `${nonce}:${count}:${own}:${protection}`;
    const response = hash(`${one}:${middle}:${two}`);
    const parts = [
      `username="${escaped(this.#user)}"`,
      `realm="${escaped(realm)}"`,
      `nonce="${escaped(nonce)}"`,
      `uri="${uri}"`,
      `response="${response}"`,
    ];
    if (algorithm !== undefined) parts.push(`algorithm=${algorithm}`);
    if (opaque !== undefined) parts.push(`opaque="${escaped(opaque)}"`);
    if (protection !== undefined) parts.push(`qop=${protection}`, `nc=${count}`, `cnonce="${own}"`);
    return `Digest ${parts.join(', ')}`;
  }
}

/** Reason why a server answered 401. @param authorization undefined where no user is known */
export function unauthorized(authorization: Authorization | undefined): string {
  if (authorization === undefined) return 'the server asks for credentials, and the URL has none (401)';
  const { unmet } = authorization;
  return unmet === undefined
    ? 'the server does not accept the credentials of the URL (401)'
    : `the server asks for credentials only in ways that are not supported (401): ${unmet}`;
}

/** Reads challenges of a WWW-Authenticate field, or credentials of an Authorization field, that have parameters. */
export function parseChallenges(field: string): Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  TOKEN.lastIndex = 0;
  const text = field.slice(0, MAX_FIELD);
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const [, name = '', quoted, plain] = found;
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain;
    const current = challenges.at(-1);
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: {} });
    else if (current !== undefined) current.parameters[name.toLowerCase()] ??= value;
  }
  return challenges;
}

function isMet({ scheme, parameters }: Challenge): boolean {
  if (scheme === 'basic') return true;
  if (scheme !== 'digest' || parameters['nonce'] === undefined) return false;
  const { qop, algorithm } = parameters;
  return hashName(algorithm) !== undefined && (qop === undefined || protectionOf(qop) !== undefined);
}

/** Picks a supported `qop` of those offered; undefined where there is none. */
function protectionOf(qop = ''): (typeof QOPS)[number] | undefined {
  const offered = qop
    .toLowerCase()
    .split(',')
    .map((one) => one.trim());
  return QOPS.find((known) => offered.includes(known));
}

function named({ scheme, parameters: { algorithm, qop } }: Challenge): string {
  const name = `${scheme.slice(0, 1).toUpperCase()}${scheme.slice(1)}`;
  return [name, algorithm && `algorithm=${algorithm}`, qop && `qop=${qop}`].filter(Boolean).join(' ');
}

function strength({ scheme, parameters }: Challenge): number {
  return scheme === 'basic' ? -1 : Object.values(HASHES).indexOf(hashName(parameters['algorithm']) ?? '');
}

function isSession(algorithm: string | undefined): boolean {
  return algorithm?.toLowerCase().endsWith('-sess') ?? false;
}

function hashName(algorithm = 'MD5'): string | undefined {
  const name = algorithm.toLowerCase().replace(/-sess$/, '');
  return Object.hasOwn(HASHES, name) ? HASHES[name] : undefined;
}

export function hashOf(algorithm: string | undefined): (text: string) => string {
  const name = hashName(algorithm) as string;
  return (text) => createHash(name).update(text).digest('hex');
}

function escaped(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
