import { createHmac, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const CREDENTIAL = /^read-only:(?<expires>\d{1,12})\.(?<seal>[A-Za-z0-9_-]{43})$/;
const SALT = 'kiln read-only links';
/**
 * Derivation cost, about a tenth of a second of a core: without it the holder of a link could try millions of tokens a second.
 */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };
const KEY_BYTES = 32;

const derive = promisify<string, string, number, typeof COST, Buffer>(scrypt);

/**
 * Credentials for reading until they expire: `read-only:`, the time of expiry in seconds since 1970, and a seal by the access
 * token. Every node with that token accepts them, until the token changes.
 */
export class ReadOnlyLinks {
  readonly #accessToken: string;
  #key: Promise<Buffer> | undefined;

  constructor(accessToken: string) {
    this.#accessToken = accessToken;
  }

  /** @param expires seconds since 1970 */
  async credential(expires: number): Promise<string> {
    return `read-only:${expires}.${await this.#seal(expires)}`;
  }

  /** @param now milliseconds since 1970 */
  async check(credential: string, now: number): Promise<'valid' | 'expired' | 'unknown'> {
    const { expires, seal = '' } = CREDENTIAL.exec(credential)?.groups ?? {};
    if (expires === undefined) return 'unknown';
    const expected = await this.#seal(Number(expires));
    if (!timingSafeEqual(Buffer.from(seal), Buffer.from(expected))) return 'unknown';
    return Number(expires) * 1000 > now ? 'valid' : 'expired';
  }

  async #seal(expires: number): Promise<string> {
    const deriving = (this.#key ??= derive(this.#accessToken, SALT, KEY_BYTES, COST));
    // memory for it may be available later
    deriving.catch(() => (this.#key = undefined));
    return createHmac('sha256', await deriving)
      .update(`${expires}`)
      .digest('base64url');
  }
}
