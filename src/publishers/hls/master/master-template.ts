/** Stand where a player's token and its query belong. No playlist has them otherwise. */
const TOKEN = '\u0001';
const QUERY = '\u0002';

/** A master playlist without what is each player's own. */
export class MasterTemplate {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * The URI of a child for a template.
   * @param prefix path in front of the token
   * @param name of the chunklist, which may have a query
   */
  static uri(prefix: string, name: string): string {
    return `${prefix}${TOKEN}${name}${QUERY}${name.includes('?') ? '&' : '?'}`;
  }

  /**
   * @param token the player's path element; undefined for children without one
   * @param query what the player asked with, without `?`, handed on to the children
   * @param base in front of that in place of its own prefix, where the player asked under other names
   */
  fill(token: string | undefined, query: string, base?: string): string {
    const path = `${base ?? ''}${token === undefined ? '' : `${token}/`}`;
    return this.text
      .replaceAll(base === undefined ? TOKEN : PREFIXED, () => path)
      .replaceAll(MARK, (_, mark: string) => (query === '' ? '' : mark + query));
  }
}

/** From where a URI begins. */
const PREFIXED = new RegExp(`[^"\\n]*${TOKEN}`, 'g');
const MARK = new RegExp(`${QUERY}([?&])`, 'g');
