/** What a description can say of its range, as far as it may go back to the server. */
const FORM = /^(?:npt|clock|smpte[\w-]*)=[\w.:+-]{1,100}$/i;
const BEGINNING = 'npt=0.000-';

const ATTRIBUTE = /^range:/i;

/** A part of a description, with the lines that its parser does not know. */
interface Section {
  readonly invalid?: readonly { readonly value: string }[];
}

/** The first `a=range` (RFC 2326 appendix C.1.5); undefined where there is none. */
export function toldRange(sections: readonly Section[]): string | undefined {
  const values = sections.flatMap(({ invalid = [] }) => invalid.map(({ value }) => value));
  return values.find((value) => ATTRIBUTE.test(value))?.replace(ATTRIBUTE, '');
}

/**
 * Values of `Range` to ask for a stream with, in the order in which they are tried; undefined: without one. A range that was
 * asked for makes some servers go there with all of their clients, so it is only named where there is no place to go to, or
 * where the server wants one: without it a stream plays from where it is, or from its beginning (RFC 2326 section 10.5).
 * @param told `a=range` of the description (RFC 2326 appendix C.1.5); undefined where there is none
 */
export function playRanges(told: string | undefined): readonly [string | undefined, ...(string | undefined)[]] {
  const range = told?.replace(/\s/g, '');
  if (range === undefined || range === '') return [BEGINNING, undefined];
  if (/^npt=now\b/i.test(range)) return ['npt=now-', undefined, BEGINNING];
  if (!FORM.test(range) || /^npt=/i.test(range)) return [undefined, BEGINNING];
  return [undefined, range, BEGINNING];
}
