import { createHash, randomBytes } from 'node:crypto';

/** One challenge of a WWW-Authenticate field (RFC 7235 section 2.1). */
interface Challenge {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

const HASHES: Readonly<Record<string, string>> = { md5: 'md5', 'sha-256': 'sha256' };
/** What a server may make the client hash and send. */
const MAX_FIELD = 4096;
/** A scheme, or a parameter of the one before. */
const TOKEN = /([A-Za-z][\w-]*)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*)))?\s*,?\s*/y;

/** Answers the challenges of a server: Digest (RFC 7616; RFC 2069 where it offers no `qop`), else Basic (RFC 7617). */
export class Authorization {
  readonly #user: string;
  readonly #password: string;
  #challenge: Challenge | undefined;
  #count = 0;

  constructor(user: string, password: string) {
    this.#user = user;
    this.#password = password;
  }

  /**
   * Takes the challenges of an answer that refused.
   * @returns false when there is none that can be met, or none but what was met already
   */
  take(fields: readonly string[]): boolean {
    const challenges = fields
      .flatMap(parseChallenges)
      .filter(isMet)
      .sort((a, b) => strength(b) - strength(a));
    const [best] = challenges;
    if (best === undefined) return false;
    const known = this.#challenge;
    const isSame =
      known !== undefined && known.scheme === best.scheme && known.parameters['nonce'] === best.parameters['nonce'];
    if (isSame && best.parameters['stale']?.toLowerCase() !== 'true') return false;
    this.#challenge = best;
    this.#count = 0;
    return true;
  }

  /** The field for one request; undefined as long as nothing was asked for. */
  field(method: string, uri: string): string | undefined {
    if (this.#challenge === undefined) return undefined;
    if (this.#challenge.scheme === 'basic')
      return `Basic ${Buffer.from(`${this.#user}:${this.#password}`).toString('base64')}`;
    return this.#digest(method, uri, this.#challenge.parameters);
  }

  #digest(
    method: string,
    uri: string,
    { realm = '', nonce = '', opaque, algorithm, qop }: Challenge['parameters'],
  ): string {
    const hash = hashOf(algorithm);
    const own = randomBytes(8).toString('hex');
    const count = (++this.#count).toString(16).padStart(8, '0');
    const secret = hash(`${this.#user}:${realm}:${this.#password}`);
    const one = isSession(algorithm) ? hash(`${secret}:${nonce}:${own}`) : secret;
    const two = hash(`${method}:${uri}`);
    const response = hash(qop === undefined ? `${one}:${nonce}:${two}` : `${one}:${nonce}:${count}:${own}:auth:${two}`);
    const parts = [
      `username="${escaped(this.#user)}"`,
      `realm="${escaped(realm)}"`,
      `nonce="${escaped(nonce)}"`,
      `uri="${uri}"`,
      `response="${response}"`,
    ];
    if (algorithm !== undefined) parts.push(`algorithm=${algorithm}`);
    if (opaque !== undefined) parts.push(`opaque="${escaped(opaque)}"`);
    if (qop !== undefined) parts.push('qop=auth', `nc=${count}`, `cnonce="${own}"`);
    return `Digest ${parts.join(', ')}`;
  }
}

function parseChallenges(field: string): Challenge[] {
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
  const offered = parameters['qop']
    ?.toLowerCase()
    .split(',')
    .map((one) => one.trim());
  return hashName(parameters['algorithm']) !== undefined && (offered === undefined || offered.includes('auth'));
}

function strength({ scheme, parameters }: Challenge): number {
  return scheme === 'basic' ? 0 : hashName(parameters['algorithm']) === 'md5' ? 1 : 2;
}

function isSession(algorithm: string | undefined): boolean {
  return algorithm?.toLowerCase().endsWith('-sess') ?? false;
}

function hashName(algorithm = 'MD5'): string | undefined {
  return HASHES[algorithm.toLowerCase().replace(/-sess$/, '')];
}

function hashOf(algorithm: string | undefined): (text: string) => string {
  const name = hashName(algorithm) as string;
  return (text) => createHash(name).update(text).digest('hex');
}

function escaped(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
