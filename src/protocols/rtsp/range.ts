/** Ranges of a description that are safe to send back to the server. */
const FORM = /^(?:npt|clock|smpte[\w-]*)=[\w.:+-]{1,100}$/i;
const BEGINNING = 'npt=0.000-';

const ATTRIBUTE = /^range:/i;

/** Part of a description, with the lines that the parser does not know. */
interface Section {
  readonly invalid?: readonly { readonly value: string }[];
}

/** Finds the first `a=range` (RFC 2326 appendix C.1.5); undefined where there is none. */
export function describedRange(sections: readonly Section[]): string | undefined {
  const values = sections.flatMap(({ invalid = [] }) => invalid.map(({ value }) => value));
  return values.find((value) => ATTRIBUTE.test(value))?.replace(ATTRIBUTE, '');
}

/**
 * Values of `Range` for PLAY, in the order of attempts; undefined: without one. A range makes some servers seek for all of their
 * clients, so it is only sent where there is nothing to seek in, or where the server demands one: without it a stream plays
 * from its current position, or from its beginning (RFC 2326 section 10.5).
 * @param described `a=range` of the description (RFC 2326 appendix C.1.5); undefined where there is none
 */
export function playRanges(described: string | undefined): readonly [string | undefined, ...(string | undefined)[]] {
  const range = described?.replace(/\s/g, '');
  if (range === undefined || range === '') return [BEGINNING, undefined];
  if (/^npt=now\b/i.test(range)) return ['npt=now-', undefined, BEGINNING];
  if (!FORM.test(range) || /^npt=/i.test(range)) return [undefined, BEGINNING];
  return [undefined, range, BEGINNING];
}
