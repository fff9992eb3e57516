import { shortDigest } from '../../../lib/short-digest.ts';

/** URIs by the stable ids of what they are of. */
export interface ChildUris {
  readonly variants: Readonly<Record<string, string>>;
  readonly renditions: Readonly<Record<string, string>>;
}

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
   * Makes a playlist whose players are steered (RFC 8216bis section 7): with the URI of the manifest, and an id of each child.
   * @param name of the steering manifest, which may have a query; undefined for players that are not steered
   */
  steered(name: string | undefined): MasterTemplate {
    if (name === undefined) return this;
    const prefix = FIRST_PREFIX.exec(this.text)?.[1] ?? '';
    const tag = `#EXT-X-CONTENT-STEERING:SERVER-URI="${MasterTemplate.uri(prefix, name)}"\n`;
    const text = this.text
      .replace(VERSION, (line) => line + tag)
      .replace(VARIANT, (_, line: string, uri: string) => `${line},STABLE-VARIANT-ID="${stableId(uri)}"\n${uri}`)
      .replace(IMAGES, (line, uri: string) => `${line},STABLE-VARIANT-ID="${stableId(uri)}"`)
      .replace(RENDITION, (line, uri: string) => `${line},STABLE-RENDITION-ID="${stableId(uri)}"`);
    return new MasterTemplate(text);
  }

  /** URIs of variants and renditions for a player, by their stable ids. Parameters as of `fill`. */
  uris(token: string | undefined, query: string, base?: string): ChildUris {
    const all = (pattern: RegExp): [id: string, uri: string][] =>
      [...this.text.matchAll(pattern)].map(({ groups: { uri = '' } = {} }) => [
        stableId(uri),
        new MasterTemplate(uri).fill(token, query, base),
      ]);
    return {
      variants: Object.fromEntries([...all(VARIANT), ...all(IMAGES)]),
      renditions: Object.fromEntries(all(RENDITION)),
    };
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
const LEGAL_ID = /^[\w+/=.-]+$/;
const AFTER_NAME = new RegExp(`[?${QUERY}].*`, 's');
const FIRST_PREFIX = new RegExp(`([^"\\n]*)${TOKEN}`);
const VARIANT = /^(#EXT-X-STREAM-INF:.*)\n(?<uri>.+)/gm;
const IMAGES = /^#EXT-X-I-FRAME-STREAM-INF:.*?URI="(?<uri>[^"]*)".*/gm;
const RENDITION = /^#EXT-X-MEDIA:.*?URI="(?<uri>[^"]*)".*/gm;
const MARK = new RegExp(`${QUERY}([?&])`, 'g');

/** Id of a child that is the same in each playlist of the stream (RFC 8216bis section 4.4.6.2): the name of its file. @param uri with placeholders */
function stableId(uri: string): string {
  const name = uri.slice(uri.indexOf(TOKEN) + 1).replace(AFTER_NAME, '');
  return LEGAL_ID.test(name) ? name : shortDigest(name);
}
