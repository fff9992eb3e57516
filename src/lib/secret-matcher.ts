import { timingSafeEqual } from 'node:crypto';

/** Length of a secret that the time of a comparison reveals, in steps of bytes. */
const STEP = 256;

/**
 * Returns a test for a secret text. Its time reveals neither the beginning of the secret nor its length, but for steps of
 * 256 bytes: texts are filled up with zeros to the same length.
 */
export function secretMatcher(secret: string): (given: string) => boolean {
  const expected = Buffer.alloc((Math.floor(Buffer.byteLength(secret) / STEP) + 1) * STEP);
  const padded = Buffer.alloc(expected.length);
  expected.write(secret);
  return (given) => {
    padded.write(given);
    const isEqual = timingSafeEqual(padded, expected);
    padded.fill(0);
    // a text with zeros at its end has the same bytes
    return isEqual && given.length === secret.length;
  };
}
