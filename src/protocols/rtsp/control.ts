const ABSOLUTE = /^[a-z][a-z\d+.-]*:\/\//i;

/**
 * The URL of a track, or of all of them (RFC 2326 appendix C.1.1): cameras count on what is relative being put behind the
 * base, its query included, and not where RFC 3986 would put it.
 * @param base the URL of the description
 * @param control as the description has it: absolute, relative, `*` for the base itself, or nothing
 */
export function controlUrl(base: string, control: string | undefined): string {
  if (control === undefined || control === '' || control === '*') return base;
  if (ABSOLUTE.test(control)) return control;
  if (control.startsWith('/')) return `${base.replace(/^([a-z][a-z\d+.-]*:\/\/[^/?#]+).*$/i, '$1')}${control}`;
  return base.endsWith('/') || control.startsWith('?') ? `${base}${control}` : `${base}/${control}`;
}

/**
 * The URL that what is relative in a description is relative to (RFC 2326 appendix C.1.1).
 * @param asked what was asked for
 * @param contentBase, contentLocation as the answer has them
 */
export function baseUrl(asked: string, contentBase: string | undefined, contentLocation: string | undefined): string {
  for (const told of [contentBase, contentLocation]) if (told !== undefined && ABSOLUTE.test(told)) return told;
  return asked;
}
