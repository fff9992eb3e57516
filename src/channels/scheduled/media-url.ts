import { readStreamUrl } from '../sources/stream-url.ts';

const FILE = /^file:\/\//i;

/**
 * Path below MediaRootDir that a `file://` URL names, percent-decoded, without leading slashes.
 * @returns undefined for other URLs, and for paths that leave the folder or are malformed
 */
export function readFileUrl(url: string): string | undefined {
  if (!FILE.test(url)) return undefined;
  let path: string;
  try {
    path = decodeURIComponent(url.replace(FILE, '')).replace(/^\/+/, '');
  } catch {
    return undefined;
  }
  const isOutside = path.split('/').includes('..');
  return path === '' || isOutside || path.includes('\0') ? undefined : path;
}

/** Validates a URL that an item can play; undefined for any other. */
export function readMediaUrl(url: string): string | undefined {
  return readFileUrl(url) !== undefined || readStreamUrl(url) !== undefined ? url : undefined;
}
