/** Longer than any host name or origin; what a stranger sends beyond it matches nothing and costs nothing. */
const MAX_LENGTH = 512;

/**
 * Pattern of names as Server.xml writes them: `*` is any run of characters, `?` any one; case does not matter.
 * @param before regular expression that the match begins with
 */
export function wildcard(pattern: string, before = ''): RegExp {
  const source = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll(/\*+/g, '.*').replaceAll('?', '.');
  return new RegExp(`^(?=.{0,${MAX_LENGTH}}$)${before}${source}$`, 'i');
}
