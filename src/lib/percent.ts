/** Undoes percent-encoding (RFC 3986 section 2.1); a text with malformed encoding, or not of UTF-8, is returned as it is. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
