import { percentDecoded } from '../../lib/percent.ts';
import { PullError } from '../pull/error.ts';
import { attributeList } from './attributes.ts';

const TAG = '#EXT-X-DEFINE:';
const NAME = /^[\w-]+$/;
const REFERENCE = /\{\$([\w-]+)\}/g;
const MAX_VARIABLES = 100;
/** Characters of a value, and of a text whose variables were replaced: no URL is longer. */
const MAX_LENGTH = 8192;

/** Variables of a playlist (RFC 8216bis sections 4.3 and 4.4.2.3). */
export class Variables {
  readonly #values = new Map<string, string>();

  /**
   * Reads the definitions of a playlist.
   * @param url that it came from, whose query `QUERYPARAM` asks for
   * @param parent variables of the multivariant playlist that led to it, which `IMPORT` asks for
   * @throws PullError for a definition without a value
   */
  static read(lines: readonly string[], url: URL, parent: Variables | undefined): Variables {
    const variables = new Variables();
    for (const line of lines) if (line.startsWith(TAG)) variables.#define(line.slice(TAG.length), url, parent);
    return variables;
  }

  /** Replaces references in a URL or the value of an attribute. @throws PullError for one that is not defined */
  expand(text: string): string {
    let length = text.length;
    return text.replace(REFERENCE, (_, name: string) => {
      const value = this.#values.get(name);
      if (value === undefined) throw new PullError(`the playlist does not define its variable ${name}`);
      length += value.length;
      if (length > MAX_LENGTH) throw new PullError('a text of the playlist is too long with its variables');
      return value;
    });
  }

  #define(list: string, url: URL, parent: Variables | undefined): void {
    const { NAME: own, VALUE, IMPORT, QUERYPARAM } = attributeList(list);
    const name = own ?? IMPORT ?? QUERYPARAM;
    if (name === undefined || !NAME.test(name)) throw new PullError('EXT-X-DEFINE has no name of a variable');
    const imported = parent === undefined ? undefined : parent.#values.get(name);
    const value = own !== undefined ? VALUE : IMPORT !== undefined ? imported : queryParameter(url, name);
    if (value === undefined) throw new PullError(`EXT-X-DEFINE has no value for ${name}`);
    if (this.#values.has(name)) throw new PullError(`the playlist defines its variable ${name} twice`);
    if (value.length > MAX_LENGTH || this.#values.size === MAX_VARIABLES)
      throw new PullError(`the playlist has more than ${MAX_VARIABLES} variables, or a longer one than ${MAX_LENGTH}`);
    this.#values.set(name, value);
  }
}

function queryParameter({ search }: URL, name: string): string | undefined {
  for (const pair of search.slice(1).split('&')) {
    const [key = '', ...value] = pair.split('=');
    if (percentDecoded(key) === name) return percentDecoded(value.join('='));
  }
  return undefined;
}
