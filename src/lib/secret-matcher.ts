import { timingSafeEqual } from 'node:crypto';

/** Length of a secret that the time of a comparison reveals, in steps of bytes. */
const STEP = 256;

/**
 * Returns a test for a secret text. Its time reveals neither the beginning of the secret nor its length, but for steps of
 * 256 bytes: texts are filled up with zeros to the same length.
 */
export function secretMatcher(secret: string): (given: string) => boolean {
  const expected = Buffer.alloc((Math.floor(secret.length / STEP) + 1) * STEP);
  const padded = Buffer.alloc(expected.length);
  expected.write(secret, 'latin1');
  return (given) => {
    padded.write(given, 'latin1');
    const isEqual = timingSafeEqual(padded, expected);
    padded.fill(0);
    // other texts may have the same bytes: with zeros at their end, or letters that are not of Latin 1
    return isEqual && given === secret;
  };
}
