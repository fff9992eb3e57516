/** Placeholders for a player's token and query. Playlists do not contain these characters otherwise. */
const TOKEN = '\u0001';
const QUERY = '\u0002';

/** A master playlist with placeholders for the token and query of each player. */
export class MasterTemplate {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Makes the URI of a child for a template.
   * @param prefix path in front of the token
   * @param name of the chunklist, which may have a query
   */
  static uri(prefix: string, name: string): string {
    return `${prefix}${TOKEN}${name}${QUERY}${name.includes('?') ? '&' : '?'}`;
  }

  /** Makes a playlist for a player that starts at a time. @param seconds from there to the end of the media playlists */
  startingBefore(seconds: number): MasterTemplate {
    const tag = `#EXT-X-START:TIME-OFFSET=-${seconds.toFixed(3)},PRECISE=YES\n`;
    return new MasterTemplate(this.text.replace(VERSION, (line) => line + tag));
  }

  /**
   * Fills in the placeholders.
   * @param token path element of the player; undefined for none
   * @param query of the player's request, without `?`, for the children
   * @param base path that replaces the prefix before the token, where the player asked under other names
   */
  fill(token: string | undefined, query: string, base?: string): string {
    const path = `${base ?? ''}${token === undefined ? '' : `${token}/`}`;
    return this.text
      .replaceAll(base === undefined ? TOKEN : PREFIXED, () => path)
      .replaceAll(MARK, (_, mark: string) => (query === '' ? '' : mark + query));
  }
}

/** Token with its prefix, from the start of the URI. */
const PREFIXED = new RegExp(`[^"\\n]*${TOKEN}`, 'g');
const VERSION = /^#EXT-X-VERSION:\d+\n/m;
const MARK = new RegExp(`${QUERY}([?&])`, 'g');
