import { PullError } from './error.ts';
import type { OpenSource } from './source.ts';

const SCHEMES = ['ovt', 'rtsp', 'rtspc', 'rtmp', 'rtmps', 'srt', 'http', 'https', 'whep', 'wheps', 'udp'] as const;
type Scheme = (typeof SCHEMES)[number];

/** Selects the source by the scheme of a URL. */
export function bySchemes(sources: Readonly<Record<Scheme, OpenSource>>): OpenSource {
  return async (url, options) => await sources[knownScheme(url)](url, options);
}

/** @throws PullError when nothing pulls such URLs */
export function knownScheme(url: string): Scheme {
  const asked = schemeOf(url);
  const scheme = SCHEMES.find((known) => known === asked);
  if (scheme !== undefined) return scheme;
  throw new PullError(`streams are pulled over ${SCHEMES.join(', ')}, not over "${asked}"`);
}

/** Scheme of a URL without its colon, in lower case; empty for other text. */
export function schemeOf(url: string): string {
  return /^([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? '';
}

/** Whether the path of a URL is that of an HLS playlist. */
export function namesPlaylist(url: string): boolean {
  return URL.canParse(url) && /\.m3u8$/i.test(new URL(url).pathname);
}
