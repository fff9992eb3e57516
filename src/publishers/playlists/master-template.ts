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
   */
  fill(token: string | undefined, query: string): string {
    const path = token === undefined ? '' : `${token}/`;
    return this.text
      .replaceAll(TOKEN, () => path)
      .replaceAll(MARK, (_, mark: string) => (query === '' ? '' : mark + query));
  }
}

const MARK = new RegExp(`${QUERY}([?&])`, 'g');
