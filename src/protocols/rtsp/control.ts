const ABSOLUTE = /^[a-z][a-z\d+.-]*:\/\//i;

/**
 * Resolves the URL of a track, or of all of them (RFC 2326 appendix C.1.1). Cameras expect a relative one to be appended to the
 * base, its query included, and not resolved as RFC 3986 does.
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
 * Base URL of a description (RFC 2326 appendix C.1.1).
 * @param asked the URL of the request
 * @param contentBase, contentLocation as the answer has them
 */
export function baseUrl(asked: string, contentBase: string | undefined, contentLocation: string | undefined): string {
  for (const url of [contentBase, contentLocation]) if (url !== undefined && ABSOLUTE.test(url)) return url;
  return asked;
}
