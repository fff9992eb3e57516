const MAX_COOKIES = 50;
const MAX_BYTES = 4096;

/**
 * Cookies of the hosts that one stream comes from. Servers put viewers' sessions into them, and servers that balance load the
 * name of the machine (RFC 6265; paths and lifetimes are not looked at, since all of it ends with the stream).
 */
export class Cookies {
  /** By host and name. */
  readonly #cookies = new Map<string, { readonly host: string; readonly secure: boolean; readonly pair: string }>();

  /** Value of `Cookie` for a request; undefined for none. */
  header({ hostname, protocol }: URL): string | undefined {
    const pairs = [...this.#cookies.values()]
      .filter(({ host, secure }) => host === hostname && (!secure || protocol === 'https:'))
      .map(({ pair }) => pair);
    return pairs.length === 0 ? undefined : pairs.join('; ');
  }

  /** @param lines values of `Set-Cookie` in an answer of that URL */
  take({ hostname: host }: URL, lines: readonly string[]): void {
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const name = pair.split('=')[0] ?? '';
      if (name === '' || !pair.includes('=') || pair.length > MAX_BYTES || /[\x00-\x1f\x7f]/.test(pair)) continue;
      const key = `${host} ${name}`;
      if (!this.#cookies.has(key) && this.#cookies.size === MAX_COOKIES) continue;
      const secure = attributes.some((attribute) => attribute.toLowerCase() === 'secure');
      const isOver = attributes.some((attribute) => /^max-age=(?:0|-\d+)$/i.test(attribute));
      if (isOver) this.#cookies.delete(key);
      else this.#cookies.set(key, { host, secure, pair });
    }
  }
}
