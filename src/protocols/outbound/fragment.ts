/** Reason why a URL with a `#` is rejected, for the client that gave it. */
export const FRAGMENT_FAULT = 'a # begins a fragment, which is not a part of the address: write %23 instead';

/**
 * Whether a `#` that was not escaped cuts a URL off within its user or password: what follows it is a fragment by RFC 3986
 * section 3.5, so that the host would be another one, or none.
 */
export function cutsCredentials(url: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^/?#]*#.*@/is.test(url);
}
