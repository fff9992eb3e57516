import { PullError, shownUrl } from './error.ts';
import type { OpenSource } from './source.ts';

/**
 * Pulls by what a URL's scheme asks for.
 * @param sources by scheme, without its colon
 */
export function bySchemes(sources: Readonly<Record<string, OpenSource>>): OpenSource {
  return (url, options) => {
    const scheme = schemeOf(url);
    const open = Object.hasOwn(sources, scheme) ? sources[scheme] : undefined;
    if (open !== undefined) return open(url, options);
    return Promise.reject(
      new PullError(`streams are pulled over ${Object.keys(sources).join(', ')} only: ${shownUrl(url)}`),
    );
  };
}

/** Without its colon, in lower case; empty for what is no URL. */
export function schemeOf(url: string): string {
  return /^([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? '';
}
